"""Reading: files, frames, arrays and folders of documents as pieces of rows, before anything is decided about them."""
