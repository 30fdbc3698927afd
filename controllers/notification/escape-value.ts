export type Format = 'JSON' | 'Slack' | 'Teams';

/** How a string of a template is read by the receiver. */
export type Place = 'text' | 'address' | 'plain';

/**
 * A value for a string of a template. In an address it is percent-encoded, so that it changes neither host nor path; in a text of Slack or
 * Teams it can neither mention users nor contain links.
 */
export function escapeValue(value: string, format: Format, place: Place): string {
  if (place === 'address') return encodeURIComponent(value.toWellFormed());
  if (format === 'Slack') return escapeSlack(value);
  // A run of text interprets no markup, so a backslash would be shown.
  return format === 'Teams' && place === 'text' ? escapeMarkdown(value) : value;
}

/** The three characters that begin mentions and links. */
export function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Adaptive Cards read a part of Markdown, and Teams reads mentions as <at>name</at>. */
function escapeMarkdown(text: string): string {
  return text.replace(/[\\[\]*_~`<]/g, '\\$&');
}
