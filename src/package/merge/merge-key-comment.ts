/** Kpt's mark for the origin of a resource, so that it is found again after its name or namespace changed locally. */
const MARK = /^metadata:[ \t]*(#[ \t]*kpt-merge:[ \t]*([^\s/]*)\/([^\s#]+))[ \t]*\r?$/m;

/** Namespace and name that a resource has upstream, from its mark; undefined without one. */
export function mergeKeyOf(text: string): { readonly namespace: string; readonly name: string } | undefined {
  const found = MARK.exec(text);
  return found === null ? undefined : { namespace: found[2] ?? '', name: found[3] ?? '' };
}

/** The text of a resource, marked as another text of it is. */
export function markedLike(text: string, other: string): string {
  const mark = MARK.exec(other)?.[1];
  return mark === undefined ? text : withMark(text, mark);
}

/** The text of a resource, marked with its namespace and name unless it is marked already, or has no line `metadata:` to mark. */
export function withMergeKey(text: string, { namespace, name }: { namespace: string; name: string }): string {
  if (/[\s#/]/.test(name + namespace) || name === '') return text;
  return withMark(text, `# kpt-merge: ${namespace}/${name}`);
}

/** The annotation with the same meaning, including its parent field if that has no other entry. */
const ONLY_IDENTIFIER =
  /^( +)annotations:[ \t]*\r?\n\1 +internal\.kpt\.dev\/upstream-identifier:[^\n]*(?:\n(?!\1 )|$(?![\r\n]))/m;
const IDENTIFIER = /^ +internal\.kpt\.dev\/upstream-identifier:[^\n]*(?:\n|$(?![\r\n]))/m;

/** The text of a resource without its marks: the comment, and the annotation beside it. */
export function withoutMergeKey(text: string): string {
  const uncommented = text.replace(/^(metadata:)[ \t]*#[ \t]*kpt-merge:[^\r\n]*/m, '$1');
  if (!uncommented.includes('internal.kpt.dev/upstream-identifier:')) return uncommented;
  return ONLY_IDENTIFIER.test(uncommented)
    ? uncommented.replace(ONLY_IDENTIFIER, '')
    : uncommented.replace(IDENTIFIER, '');
}

function withMark(text: string, mark: string): string {
  return MARK.test(text) ? text : text.replace(/^metadata:[ \t]*(?=\r?$)/m, () => `metadata: ${mark}`);
}

/** A YAML file without the marks of its resources. */
export function withoutMergeKeys(data: Buffer): string {
  return data
    .toString('latin1')
    .split(/^(?=---\s)/m)
    .map(withoutMergeKey)
    .join('');
}
