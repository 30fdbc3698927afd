import { Document, isCollection, type Node, Pair, Scalar, type ToStringOptions, visit, YAMLMap, YAMLSeq } from 'yaml';

/** Texts that read as themselves without quotes, in a flow collection too. */
const SAFE_PLAIN = /^[A-Za-z0-9_/][\w./@%+=~-]*(?::[\w./@%+=~-]+)*$/;

/** Creates a document for nodes that contain the source texts of their scalars. */
export function newDocument(contents: Node): Document {
  const document = new Document(null, { schema: 'failsafe', customTags: ['null'] });
  document.contents = contents as never;
  return document;
}

/** One line for a scalar; undefined if it needs more, or cannot be written in a flow collection. */
export function printScalar(node: Scalar, inFlow: boolean): string | undefined {
  const { value, type } = node;
  if (node.tag !== undefined || node.commentBefore) return undefined;
  if (value === null) return 'null';
  const text = String(value);
  if ((type === 'PLAIN' || type === undefined) && SAFE_PLAIN.test(text)) return text;
  const printed = printOne(text, type);
  if (printed.includes('\n')) return undefined;
  return inFlow && !/^["']/.test(printed) ? printOne(text, 'QUOTE_DOUBLE') : printed;
}

function printOne(text: string, type: Scalar['type']): string {
  const scalar = Object.assign(new Scalar(text), type === undefined ? {} : { type });
  return newDocument(scalar).toString({ lineWidth: 0 }).replace(/\n$/, '');
}

/** Prints the lines of an entry of a mapping without indentation, optionally with the comments above it. */
export function printPair(
  key: Node,
  value: Node | null,
  style: ToStringOptions,
  { comments = false }: { readonly comments?: boolean } = {},
): string[] {
  const bare = key.clone() as Scalar;
  if (!comments) delete bare.commentBefore;
  delete bare.spaceBefore;
  const map = new YAMLMap();
  map.items.push(new Pair(bare, commentBehind(value)));
  return linesOf(newDocument(map), style);
}

/** A comment above the first entry of a collection is behind the collection once it is empty. */
function commentBehind(value: Node | null): Node | null {
  if (!isCollection(value) || value.items.length > 0) return value;
  const empty = value.clone() as YAMLMap;
  const comments = [value.commentBefore, value.comment].filter((comment) => comment);
  if (comments.length > 0) empty.comment = comments.join('\n');
  delete empty.commentBefore;
  empty.flow = true;
  return empty;
}

/** The lines of an item of a list, from its dash. */
export function printItem(item: Node, style: ToStringOptions): string[] {
  const list = new YAMLSeq();
  list.items.push(item);
  return linesOf(newDocument(list), style);
}

function linesOf(document: Document, style: ToStringOptions): string[] {
  const text = keepKeyComments(document.toString(style));
  // Trailing blank lines belong to a text that keeps them.
  return text.slice(0, text.endsWith('\n') ? -1 : undefined).split('\n');
}

/**
 * Prints a document with all multi-line texts in double quotes: the library writes some of them (`-` and a line in a flow
 * collection, lines of only blanks) in a form that no library can parse.
 */
export function printQuoted(document: Document, style: ToStringOptions): string {
  const copy = document.clone();
  visit(copy, {
    Scalar(_, node) {
      if (String(node.value).includes('\n')) node.type = 'QUOTE_DOUBLE';
    },
  });
  return copy.toString(style);
}

/** The library moves a comment after a key to a separate line; kpt and its functions expect theirs after the key. */
export function keepKeyComments(printed: string): string {
  return printed.replace(/^([^\n#]*[^\s#]:)\n *(# ?kpt-[^\n]*)$/gm, '$1 $2');
}
