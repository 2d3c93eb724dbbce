# Values of top-level expressions as media types.

send_value <- function(value, is_main, answers) {
  text <- paste(utils::capture.output(print(value)), collapse = "\n")
  bundle <- list()
  # Printing some values, such as plots of lattice, draws them and prints nothing.
  if (nzchar(text)) bundle[["text/plain"]] <- to_json(clean(text))
  if (is.data.frame(value)) bundle <- c(bundle, describe_data_frame(value))
  if (length(bundle) > 0) answers$send_result(bundle, is_main)
}
