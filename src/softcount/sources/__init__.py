"""Reading files, frames, arrays and folders of documents as pieces of rows, before the kinds of columns are decided."""
