import * as z from 'zod';
import { deepEqual } from '../model/deep-equal.ts';
import { kptfileShape } from '../model/field-shape.ts';
import { type KptfileEdit, KptfileEditError, kptfileEditSchema } from '../model/kptfile-edit.ts';
import { KptfileReadFailure } from '../model/kptfile-error.ts';
import type { Kptfile } from '../model/kptfile-schema.ts';
import { findLongList } from '../model/limits.ts';
import { type LoadedKptfile, loadKptfile } from '../read/read-kptfile.ts';
import { YamlLayout } from '../yaml/yaml-layout.ts';
import { styleOf } from '../yaml/yaml-render.ts';
import { applyKptfileEdit } from './apply-kptfile-edit.ts';
import { spliceMapping } from './splice-model.ts';
import { SpliceSheet } from './splice-sheet.ts';

/**
 * Makes the edits, in order, by splicing the text: only the lines that mean the change differ. Comments, quotes,
 * indentation, list style, line breaks, a byte order mark and a missing final line break stay. Edits that change
 * nothing return the very text. Before it returns, the result is read again and compared with what
 * applyKptfileEdit returns; so a text is never broken.
 * Throws KptfileEditError: nothing is half done.
 */
export function editKptfile(text: string, edits: readonly KptfileEdit[]): string {
  let loaded = load(text);
  for (const batch of batchesOf(edits)) {
    const model = batch.reduce(applyKptfileEdit, loaded.kptfile);
    if (deepEqual(model, loaded.kptfile)) continue;
    checkLists(model);
    loaded = spliced(loaded, model);
  }
  return loaded.tree.source.text;
}

/** Edits that are spliced together. Each splice reads the whole text again, so that one for each condition would be quadratic. */
function batchesOf(edits: readonly KptfileEdit[]): KptfileEdit[][] {
  const batches: KptfileEdit[][] = [];
  let types = new Set<string>();
  for (const edit of edits) {
    checkEdit(edit);
    const type = typeOf(edit);
    const batch = batches.at(-1);
    const joins = type !== undefined && batch?.[0]?.op === edit.op && !types.has(type);
    if (joins) batch?.push(edit);
    else {
      batches.push([edit]);
      types = new Set();
    }
    if (type !== undefined) types.add(type);
  }
  return batches;
}

/** What a condition or gate edit is about: several of these change a text together as they would one after the other. */
function typeOf(edit: KptfileEdit): string | undefined {
  if (edit.op === 'setCondition') return edit.condition.type;
  if (edit.op === 'removeCondition') return edit.type;
  return edit.op === 'addGate' || edit.op === 'removeGate' ? edit.conditionType : undefined;
}

function checkLists({ info, status }: Kptfile): void {
  const long = findLongList((_parent, field) =>
    field === 'conditions' ? status?.conditions?.length : info?.readinessGates?.length,
  );
  if (long !== undefined) throw new KptfileEditError('TooMany', long.message);
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

const MAX_KEY_CHARACTERS = 1000;

function checkStrings(value: unknown): void {
  if (typeof value === 'string' && !value.isWellFormed()) {
    throw new KptfileEditError('InvalidEdit', 'A text contains half of a surrogate pair, which UTF-8 cannot hold.');
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, field] of Object.entries(value)) {
    checkStrings(key);
    checkStrings(field);
    // YAML limits a key to 1024 characters on one line.
    if (key.length > MAX_KEY_CHARACTERS || key === '__proto__') {
      throw new KptfileEditError('InvalidEdit', `${JSON.stringify(key.slice(0, 40))} cannot be a field name.`);
    }
  }
}

function spliced({ tree, root, kptfile }: LoadedKptfile, model: Kptfile): LoadedKptfile {
  const { source } = tree;
  const layout = new YamlLayout(source, root);
  const found = styleOf(root, source.lineBreak, (offset) => source.indentOf(offset));
  let place = source.text.length;
  // The second try writes texts of several lines in quotes: a comment that follows could become part of a block text.
  for (const style of [found, { ...found, blockText: false }]) {
    const sheet = new SpliceSheet(layout, style);
    spliceMapping(sheet, root, kptfile, model, { from: root.start, column: 0, flow: root.flow, shape: kptfileShape });
    const result = sheet.apply();
    const next = result === undefined ? undefined : reload(closed(result, layout));
    if (next !== undefined && deepEqual(next.kptfile, model)) return next;
    place = Math.min(...sheet.splices.map(({ start }) => start));
  }
  throw layout.unsupported(place, 'it is written in a way that no safe change is known for');
}

/**
 * The text with a final line break if the edit moved a block text to an end that has none: kpt's reader counts the
 * break as part of the block text, js-yaml does not look for it.
 */
function closed(text: string, before: YamlLayout): string {
  if (/[\r\n]$/.test(text) || before.endsInBlockScalar()) return text;
  const loaded = reload(text);
  const ends = loaded !== undefined && new YamlLayout(loaded.tree.source, loaded.root).endsInBlockScalar();
  return ends ? text + before.source.lineBreak : text;
}

function reload(text: string): LoadedKptfile | undefined {
  try {
    return loadKptfile(text);
  } catch (error) {
    if (error instanceof KptfileReadFailure) return undefined;
    throw error;
  }
}
