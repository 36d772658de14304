"""Scanners of content: rules as data, one matcher, views of the content, findings without the text, redaction."""
