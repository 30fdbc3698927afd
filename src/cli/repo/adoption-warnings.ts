/** Flaws that a regular publication never has, and what to do before it is adopted. */
const WARNINGS: readonly { readonly reasons: ReadonlySet<string>; readonly text: string }[] = [
  {
    reasons: new Set(['BadSignature', 'RevokedKey', 'OtherRevision', 'ContentChanged']),
    text: 'a statement that was changed or copied, or whose key was revoked; find out why before adopting',
  },
  {
    reasons: new Set(['GateUnmet', 'NotApproved', 'ChangesRequested', 'ForeignFiles']),
    text: 'a statement that names what was bypassed, as the last column shows; adopt that only if you accept it',
  },
];

/** Sentences about tags that need a check before they are adopted. */
export function adoptionWarnings(tags: readonly { readonly reason: string }[]): string[] {
  return WARNINGS.flatMap(({ reasons, text }) => {
    const { length } = tags.filter(({ reason }) => reasons.has(reason));
    return length === 0 ? [] : [`${length} of these tags ${length === 1 ? 'carries' : 'carry'} ${text}`];
  });
}
