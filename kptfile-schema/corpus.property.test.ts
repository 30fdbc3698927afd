import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runs } from '../test/support/runs.ts';
import { skipFor } from '../test/support/skip.ts';
import {
  applyKptfileEdit,
  conditionsOf,
  editKptfile,
  gatesOf,
  isAcceptedByKpt,
  kptfileSchema,
  lintKptfile,
  readKptfile,
} from './index.ts';
import { type CorpusFile, corpusFiles } from './test/corpus.ts';
import { sampleEdits } from './test/sample-edits.ts';
import { wronglyChangedLines } from './test/untouched-lines.ts';

const corpus = corpusFiles();

describe('the corpus of real Kptfiles', skipFor(corpus === undefined && 'there is no corpus of Kptfiles'), () => {
  const all = corpus ?? [];
  const count = runs(all.length);
  /** All of them, or as many from all over the corpus. */
  const files = all.filter(
    (_, place) => Math.floor((place * count) / all.length) !== Math.floor(((place - 1) * count) / all.length),
  );

  test('every file is read or refused with the code that its index entry calls for', () => {
    expect(all.length).toBeGreaterThan(600);
    expect(files).toHaveLength(count);
    for (const file of files) {
      const result = readKptfile(file.bytes);
      expect([file.file, result.ok ? 'ok' : result.error.code]).toEqual([file.file, expectedCode(file)]);
    }
  });

  test('kpt accepts a model exactly if lint has no error for its text', () => {
    for (const file of files) {
      const result = readKptfile(file.text);
      if (!result.ok) continue;
      const hasError = lintKptfile(file.text).some(({ severity }) => severity === 'error');
      expect([file.file, isAcceptedByKpt(result.kptfile)]).toEqual([file.file, !hasError]);
    }
  });

  test('gates, conditions and functions are those that the index lists', () => {
    for (const file of files) {
      const result = readKptfile(file.text);
      if (!result.ok) continue;
      const { kptfile } = result;
      expect(gatesOf(kptfile), file.file).toEqual(file.gates);
      expect(kptfile.status?.conditions?.length ?? 0, file.file).toBe(file.nConditions);
      expect(conditionsOf(kptfile).size, file.file).toBe(file.nConditions);
      const pipeline = [...(kptfile.pipeline?.mutators ?? []), ...(kptfile.pipeline?.validators ?? [])];
      const functions = pipeline.map(({ image, exec }) => image ?? `exec:${exec}`);
      expect(functions, file.file).toEqual(file.functions);
    }
  });

  test('the model fits the schema, and agrees with another YAML reader', () => {
    for (const file of files) {
      const result = readKptfile(file.text);
      if (!result.ok) continue;
      expect(kptfileSchema.parse(result.kptfile), file.file).toEqual(result.kptfile);
      expect(texts(result.kptfile), file.file).toEqual(texts(parse(file.text, { schema: 'failsafe' })));
    }
  });

  test('lint finds unknown fields exactly where the index has some', () => {
    for (const file of files) {
      if (expectedCode(file) !== 'ok') continue;
      const unknown = lintKptfile(file.text).filter(({ code }) => code === 'UnknownField');
      expect([file.file, unknown.length]).toEqual([file.file, file.unknownFields.length]);
    }
  });

  test('every kind of edit has the result of its model and changes no other line', () => {
    let edits = 0;
    for (const { file, text } of files) {
      const read = readKptfile(text);
      if (!read.ok) continue;
      for (const edit of sampleEdits(read.kptfile)) {
        const model = applyKptfileEdit(read.kptfile, edit);
        const result = editKptfile(text, [edit]);
        const label = `${file} ${JSON.stringify(edit)}`;
        const reread = readKptfile(result);
        if (!reread.ok) throw new Error(`${label}: ${reread.error.message}`);
        expect(reread.kptfile, label).toEqual(model);
        if (model === read.kptfile) expect(result, label).toBe(text);
        expect(wronglyChangedLines(text, result, read.kptfile, model), `${label}\n${result}`).toEqual([]);
        edits++;
      }
    }
    expect(edits).toBeGreaterThan(10 * count);
  });
});

function expectedCode(file: CorpusFile): string {
  if (file.parseError !== null) return file.parseError.includes('<<<<<<<') ? 'MergeConflict' : 'Syntax';
  if (file.apiVersion === 'kpt.dev/v1alpha1' || file.apiVersion === 'kpt.dev/v1alpha2') return 'DeprecatedVersion';
  if (file.apiVersion !== 'kpt.dev/v1') return 'NotAKptfile';
  return file.unknownFields.includes('pipeline:nottype') ? 'Shape' : 'ok';
}

/** All texts of a value by path; empty mappings, lists, and nulls in whichever form say nothing. */
function texts(value: unknown, path = '', result = new Map<string, string>()): Map<string, string> {
  if (typeof value === 'object' && value !== null) {
    for (const [key, field] of Object.entries(value)) texts(field, `${path}/${key}`, result);
  } else if (value !== null && value !== '' && value !== 'null') result.set(path, String(value));
  return result;
}
