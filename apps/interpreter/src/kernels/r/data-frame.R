# Data frames as an HTML table and as lists of column values.

# A table in HTML is for people.
most_shown_rows <- 60
most_shown_columns <- 20
most_cells <- 1000000

describe_data_frame <- function(frame) {
  bundle <- list("text/html" = to_json(to_html(frame)))
  if (prod(dim(frame)) <= most_cells) {
    columns <- lapply(as.list(frame), function(column) I(to_plain(column)))
    names(columns) <- clean(names(frame))
    # An empty list would become an array.
    bundle[["application/vnd.atoll.data+json"]] <- if (length(columns) > 0) to_json(columns) else "{}"
  }
  bundle
}

to_html <- function(frame) {
  shown <- frame[seq_len(min(nrow(frame), most_shown_rows)), seq_len(min(ncol(frame), most_shown_columns)), drop = FALSE]
  cells <- as.matrix(format(shown))
  head <- row_of(c("", names(shown)), "th")
  body <- vapply(seq_len(nrow(shown)), function(index) {
    paste0("<tr><th>", escape(row.names(shown)[index]), "</th>", cells_of(cells[index, ], "td"), "</tr>\n")
  }, "")
  caption <- paste0("<caption>A data.frame: ", nrow(frame), " x ", ncol(frame), "</caption>\n")
  paste0("<table>\n", caption, "<thead>\n", head, "</thead>\n<tbody>\n", paste(body, collapse = ""), "</tbody>\n</table>")
}

row_of <- function(texts, tag) paste0("<tr>", cells_of(texts, tag), "</tr>\n")

cells_of <- function(texts, tag) paste0("<", tag, ">", escape(trimws(texts)), "</", tag, ">", collapse = "")

escape <- function(text) {
  text <- gsub("&", "&amp;", clean(text), fixed = TRUE)
  gsub(">", "&gt;", gsub("<", "&lt;", text, fixed = TRUE), fixed = TRUE)
}

# Numbers and truth values stay; everything else becomes text.
to_plain <- function(column) {
  if (!is.object(column) && (is.numeric(column) || is.logical(column))) return(as.vector(column))
  if (is.list(column)) return(vapply(column, function(value) clean(paste(format(value), collapse = ", ")), ""))
  if (inherits(column, "POSIXt")) return(format(column, "%Y-%m-%dT%H:%M:%S"))
  clean(as.character(column))
}
