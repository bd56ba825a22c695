"""Ways to total counts over chunks. Each adds in the order of the chunks, so all give the same bits."""
