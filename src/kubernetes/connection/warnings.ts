/** `299 - "text"`, the form of RFC 7234 that Kubernetes uses; other codes and forms are ignored, as in client-go. */
const WARNING = /299 \S+ "((?:[^"\\]|\\.)*)"/g;

/** The warnings in the headers of a response. */
export function warningsOf(header: string | readonly string[] | undefined): string[] {
  const lines = header === undefined ? [] : typeof header === 'string' ? [header] : header;
  return lines.flatMap((line) => [...line.matchAll(WARNING)].map(([, text = '']) => text.replace(/\\(.)/g, '$1')));
}
