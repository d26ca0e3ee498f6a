"""Results of experiments -> one report, as Markdown and as a page."""
