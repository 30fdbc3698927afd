import { loadAll, YAMLException } from 'js-yaml';
import { parseAllDocuments } from 'yaml';

/** Values that the aliases of one file may expand to; as many as `function/yaml` permits. */
const MAX_VALUES = 100_000;
/** What a bracket or a quote that is not closed leads to. */
const UNCLOSED = /^(?:deficient indentation|unexpected end of the stream)/;

export interface YamlProblem {
  /** From 1. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** The first mistake in a text that should be YAML. Aliases that expand to more values than a resource has are one. */
export function yamlProblem(text: string): YamlProblem | undefined {
  let documents: unknown[];
  try {
    documents = loadAll(text) as unknown[];
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const { line, column } = placeOf(text, error.mark?.position ?? 0);
    const reason =
      (UNCLOSED.test(error.reason) ? unclosed(upTo(text, error.mark?.position)) : undefined) ?? error.reason;
    return { line, column, message: `not valid YAML: ${reason}` };
  }
  const alias = /(?:^|[\s[{,:-])\*[^\s,[\]{}]/m.exec(text);
  if (alias === null) return undefined;
  const sizes = new Map<object, number>();
  if (documents.every((document) => valuesIn(document, sizes) <= MAX_VALUES)) return undefined;
  const message = `its aliases, of which this is the first, expand to more than ${MAX_VALUES} values`;
  return { ...placeOf(text, alias.index + 1), message };
}

/** Of a position; of the end of the text, which no editor shows as a line, the last character in it. */
function placeOf(text: string, position: number): Pick<YamlProblem, 'line' | 'column'> {
  const end = text.trimEnd().length;
  const before = text.slice(0, position < end ? position : Math.max(end - 1, 0)).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** With the whole line of a position: what comes after the first mistake can have any number of others, each of which costs time. */
function upTo(text: string, position = text.length): string {
  const end = text.indexOf('\n', position);
  return end === -1 ? text : text.slice(0, end + 1);
}

/** What is not closed, in the words of the parser that names it. */
function unclosed(text: string): string | undefined {
  try {
    const documents = parseAllDocuments(text, { logLevel: 'silent', uniqueKeys: false });
    const messages = [...documents].flatMap(({ errors }) => errors.map(({ message }) => message.split('\n')[0] ?? ''));
    const found = messages.find((message) => /end with a [\]}]|Missing closing/.test(message));
    return found?.replace(/ at line \d+, column \d+:?$/, '').replace(/(?<=closing ["'])quote$/, ' quote');
  } catch {
    // It is nested too deep.
    return undefined;
  }
}

/** The number of values as a tree; each shared one is counted once, and added where it is used. Infinite for one that contains itself. */
function valuesIn(value: unknown, sizes: Map<object, number>): number {
  if (typeof value !== 'object' || value === null) return 1;
  const known = sizes.get(value);
  if (known !== undefined) return known;
  sizes.set(value, Number.POSITIVE_INFINITY);
  let size = 1;
  for (const part of Object.values(value)) size += valuesIn(part, sizes);
  sizes.set(value, size);
  return size;
}
