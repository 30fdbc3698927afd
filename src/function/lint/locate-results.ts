import { isMap, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml';
import type { PipelineStepResult, ResultItem } from '../../../kptfile-schema/index.ts';
import type { Finding } from './finding.ts';

/** Bytes of the files that are read to find lines; results about others are at their first line. */
const MAX_READ_BYTES = 512 * 1024;
const MAX_SEGMENTS = 100;
const SEVERITIES: Readonly<Record<string, Finding['severity']>> = { error: 'error', warning: 'warning' };

/**
 * The results of functions, at the lines of the files of their package that they are about: the field, else the resource, else the file, else
 * the Kptfile, which names the function. At most `limit`.
 */
export function locateResults(
  steps: readonly PipelineStepResult[],
  files: ReadonlyMap<string, string>,
  limit: number,
): Finding[] {
  const reader = new DocumentReader(files);
  const findings: Finding[] = [];
  for (const { name, image, exec, results = [] } of steps) {
    const code = shortName(name ?? image ?? exec ?? '');
    for (const result of results) {
      if (findings.length >= limit) return findings;
      const { file, line, column } = reader.placeOf(result);
      const severity = SEVERITIES[result.severity ?? 'info'] ?? 'notice';
      const field = result.field?.path === undefined ? '' : `${result.field.path}: `;
      findings.push({ file, line, column, severity, message: `${field}${result.message ?? ''}`, code });
    }
  }
  return findings;
}

/** The place that a message about a package names as `<file>:<line>`, such as the failure of a pipeline. */
export function placeIn(
  message: string,
  files: ReadonlyMap<string, string>,
): { file: string; line: number } | undefined {
  for (const [, file = '', line] of message.matchAll(/([^\s:'"(]+):(\d{1,9})\b/g))
    if (files.has(file)) return { file, line: Math.max(1, Number(line)) };
  return undefined;
}

/** Where a field of the first resource of a file is, else its deepest part that is there. */
export function placeOfField(
  files: ReadonlyMap<string, string>,
  path: string,
  field: string,
): Pick<Finding, 'file' | 'line' | 'column'> {
  return new DocumentReader(files).placeOf({ file: { path }, field: { path: field } });
}

/** An image without registry, tag and digest, as the title of a finding. */
function shortName(name: string): string {
  return (
    name
      .replace(/@.*$/, '')
      .replace(/:[^/]*$/, '')
      .replace(/^.*\//, '') || 'function'
  );
}

interface ReadDocument {
  readonly root: Node | null;
  readonly lines: LineCounter;
}

class DocumentReader {
  readonly #files: ReadonlyMap<string, string>;
  readonly #read = new Map<string, readonly ReadDocument[]>();
  #left = MAX_READ_BYTES;

  constructor(files: ReadonlyMap<string, string>) {
    this.#files = files;
  }

  placeOf({ file, field, resourceRef }: ResultItem): Pick<Finding, 'file' | 'line' | 'column'> {
    const path = file?.path !== undefined && this.#files.has(file.path) ? file.path : undefined;
    if (path !== undefined) return this.#placeAt(path, this.#documentsOf(path)[file?.index ?? 0], field?.path);
    if (resourceRef?.kind !== undefined)
      for (const other of this.#files.keys()) {
        const { kind, name } = resourceRef;
        const found = this.#documentsOf(other).find(({ root }) => isMap(root) && isResource(root, kind, name));
        if (found !== undefined) return this.#placeAt(other, found, field?.path);
      }
    return { file: 'Kptfile', line: 1, column: 1 };
  }

  #placeAt(file: string, document: ReadDocument | undefined, field = ''): Pick<Finding, 'file' | 'line' | 'column'> {
    const offset = document === undefined ? undefined : offsetOf(document.root, segmentsOf(field));
    if (document === undefined || offset === undefined) return { file, line: 1, column: 1 };
    const { line, col } = document.lines.linePos(offset);
    return { file, line, column: col };
  }

  #documentsOf(path: string): readonly ReadDocument[] {
    const known = this.#read.get(path);
    if (known !== undefined) return known;
    const text = this.#files.get(path) ?? '';
    this.#left -= text.length;
    const read = this.#left < 0 ? [] : documentsIn(text);
    this.#read.set(path, read);
    return read;
  }
}

function documentsIn(text: string): readonly ReadDocument[] {
  const lines = new LineCounter();
  try {
    const documents = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: false, logLevel: 'silent' });
    return Array.from(documents, ({ contents }) => ({ root: contents as Node | null, lines }));
  } catch {
    // It is nested too deep for the parser.
    return [];
  }
}

function isResource(root: Node, kind: string, name: string | undefined): boolean {
  if (!isMap(root) || root.get('kind') !== kind) return false;
  const metadata = root.get('metadata', true);
  return name === undefined || (isMap(metadata) && metadata.get('name') === name);
}

/** The fields of a path such as `spec.containers[0].image` or `spec.containers.0.image`. */
function segmentsOf(path: string): readonly string[] {
  return path
    .slice(0, 10_000)
    .split(/[.[\]"']+/, MAX_SEGMENTS)
    .filter((segment) => segment !== '');
}

/** Where the deepest field of a path begins that is there. */
function offsetOf(root: Node | null, segments: readonly string[]): number | undefined {
  let node: unknown = root;
  let offset = root?.range?.[0];
  for (const segment of segments) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => String((key as { value?: unknown })?.value ?? '') === segment);
      if (pair === undefined) break;
      offset = (pair.key as Node).range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node) && /^\d+$/.test(segment)) {
      node = node.items[Number(segment)];
      offset = (node as Node | undefined)?.range?.[0] ?? offset;
    } else break;
  }
  return offset;
}
