import * as z from 'zod';
import { applyKptfileEdit } from './apply-kptfile-edit.ts';
import { deepEqual } from './deep-equal.ts';
import { kptfileShape } from './field-shape.ts';
import { type KptfileEdit, KptfileEditError, kptfileEditSchema } from './kptfile-edit.ts';
import { KptfileReadFailure } from './kptfile-error.ts';
import type { Kptfile } from './kptfile-schema.ts';
import { type LoadedKptfile, loadKptfile } from './read-kptfile.ts';
import { spliceMapping } from './splice-model.ts';
import { type Splice, SpliceSheet } from './splice-sheet.ts';
import { YamlLayout } from './yaml-layout.ts';
import { styleOf } from './yaml-render.ts';

/**
 * Makes the edits, in order, by splicing the text: only the lines that mean the change differ. Comments, quotes,
 * indentation, list style, line breaks, a byte order mark and a missing final line break stay. Edits that change
 * nothing return the very text. Before it returns, the result is read again and compared with what
 * applyKptfileEdit says; so a text is never broken.
 * Throws KptfileEditError: nothing is half done.
 */
export function editKptfile(text: string, edits: readonly KptfileEdit[]): string {
  let current = text;
  let loaded = load(text);
  for (const edit of edits) {
    checkEdit(edit);
    const model = applyKptfileEdit(loaded.kptfile, edit);
    if (deepEqual(model, loaded.kptfile)) continue;
    const next = spliced(loaded, model);
    current = next.text;
    loaded = next.loaded;
  }
  return current;
}

function load(text: string): LoadedKptfile {
  try {
    return loadKptfile(text);
  } catch (error) {
    if (!(error instanceof KptfileReadFailure)) throw error;
    const { code, message, line, column } = error.error;
    throw new KptfileEditError('Unreadable', message, { readCode: code, line, column });
  }
}

function checkEdit(edit: KptfileEdit): void {
  const result = kptfileEditSchema.safeParse(edit);
  if (!result.success) throw new KptfileEditError('InvalidEdit', z.prettifyError(result.error));
  checkStrings(edit);
}

const LONGEST_KEY = 1000;

function checkStrings(value: unknown): void {
  if (typeof value === 'string' && !value.isWellFormed()) {
    throw new KptfileEditError('InvalidEdit', 'A text contains half of a surrogate pair, which UTF-8 cannot hold.');
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, field] of Object.entries(value)) {
    checkStrings(key);
    checkStrings(field);
    // YAML limits a key to 1024 characters on one line.
    if (key.length > LONGEST_KEY || key === '__proto__') {
      throw new KptfileEditError('InvalidEdit', `${JSON.stringify(key.slice(0, 40))} cannot be a field name.`);
    }
  }
}

interface Spliced {
  readonly text: string;
  readonly loaded: LoadedKptfile;
}

function spliced({ tree, root, kptfile }: LoadedKptfile, model: Kptfile): Spliced {
  const { source } = tree;
  const layout = new YamlLayout(source, root);
  const style = styleOf(root, source.lineBreak, (offset) => source.indentOf(offset));
  const sheet = new SpliceSheet(layout, style);
  spliceMapping(sheet, root, kptfile, model, { from: root.start, column: 0, flow: root.flow, shape: kptfileShape });
  const result = sheet.apply(closedBlockScalar(sheet));
  // A block text that becomes the end of the file needs its line break, even if the file had no final one before.
  for (const candidate of result === undefined ? [] : [result, result + style.lineBreak]) {
    const loaded = reload(candidate);
    if (loaded !== undefined && deepEqual(loaded.kptfile, model)) return { text: candidate, loaded };
  }
  const place = Math.min(...sheet.splices.map(({ start }) => start));
  throw layout.unsupported(place, 'it is written in a way that no safe change is known for');
}

/**
 * A block text at the end of a file without a final line break says nothing about one. If lines are added behind it
 * the break appears, so its header must say that it does not count.
 */
function closedBlockScalar({ splices, layout }: SpliceSheet): Splice[] {
  const { length } = layout.source.text;
  if (!splices.some(({ start, text }) => start === length && text !== '')) return [];
  const last = layout.lastBlockScalar();
  if (last === undefined || last.strip || /[\r\n]$/.test(layout.source.text)) return [];
  const { header, headerEnd } = last;
  const indicator = layout.source.text.slice(header, headerEnd).replace('+', '');
  return [{ start: header, end: headerEnd, text: `${indicator}-` }];
}

function reload(text: string): LoadedKptfile | undefined {
  try {
    return loadKptfile(text);
  } catch (error) {
    if (error instanceof KptfileReadFailure) return undefined;
    throw error;
  }
}
