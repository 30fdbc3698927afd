import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runs } from '../../test/support/runs.ts';
import {
  applyKptfileEdit,
  editKptfile,
  type Kptfile,
  type KptfileEdit,
  KptfileEditError,
  readKptfile,
} from '../index.ts';
import { anyEdit, messyKptfile } from '../test/kptfile-arbitrary.ts';
import { wronglyChangedLines } from '../test/untouched-lines.ts';

function read(text: string): Kptfile {
  const result = readKptfile(text);
  if (!result.ok) throw new Error(`${result.error.message} (${result.error.line}:${result.error.column})\n${text}`);
  return result.kptfile;
}

/** Runs both sides of an edit; undefined if both refuse it because there is no such function. */
function bothWays(text: string, edit: KptfileEdit): { result: string; model: Kptfile } | undefined {
  let model: Kptfile;
  try {
    model = applyKptfileEdit(read(text), edit);
  } catch (error) {
    expect(error).toBeInstanceOf(KptfileEditError);
    expect(() => editKptfile(text, [edit])).toThrow((error as Error).message);
    return undefined;
  }
  return { result: editKptfile(text, [edit]), model };
}

test('the check of untouched lines finds what a formatter would change', () => {
  const text = 'apiVersion: kpt.dev/v1\nkind: Kptfile # kind\n\ninfo:\n    site: a\n';
  const edit: KptfileEdit = { op: 'addGate', conditionType: 'A' };
  const result = editKptfile(text, [edit]);
  const model = applyKptfileEdit(read(text), edit);
  expect(wronglyChangedLines(text, result, read(text), model)).toEqual([]);
  expect(wronglyChangedLines(text, result.replace(' # kind', ''), read(text), model)).toEqual([1]);
  expect(wronglyChangedLines(text, result.replace('\n\n', '\n'), read(text), model)).toEqual([2]);
  expect(wronglyChangedLines(text, result.replaceAll('    ', '  '), read(text), model)).toEqual([4]);
  expect(wronglyChangedLines(text, result.replaceAll('\n', '\r\n'), read(text), model)).not.toEqual([]);
});

describe('editKptfile on Kptfiles of any style', () => {
  test('reading the edited text returns the edited model', () => {
    fc.assert(
      fc.property(messyKptfile, fc.array(anyEdit, { minLength: 1, maxLength: 4 }), (text, edits) => {
        let current = text;
        for (const edit of edits) {
          const both = bothWays(current, edit);
          if (both === undefined) continue;
          expect(read(both.result)).toEqual(both.model);
          current = both.result;
        }
      }),
      { numRuns: runs(800) },
    );
  });

  test('an edit leaves every other line as it is', () => {
    fc.assert(
      fc.property(messyKptfile, anyEdit, (text, edit) => {
        const both = bothWays(text, edit);
        if (both === undefined) return;
        expect(wronglyChangedLines(text, both.result, read(text), both.model)).toEqual([]);
      }),
      { numRuns: runs(800) },
    );
  });

  test('the second time, an edit that sets or removes by name changes nothing', () => {
    fc.assert(
      fc.property(messyKptfile, anyEdit, (text, edit) => {
        if (edit.op === 'addFunction' || edit.op === 'removeFunction') return;
        const once = editKptfile(text, [edit]);
        expect(editKptfile(once, [edit])).toBe(once);
      }),
      { numRuns: runs(300) },
    );
  });

  test('another YAML reader understands the result in the same way', () => {
    fc.assert(
      fc.property(messyKptfile, anyEdit, (text, edit) => {
        const both = bothWays(text, edit);
        if (both === undefined) return;
        for (const version of ['1.1', '1.2'] as const) {
          const other: unknown = parse(both.result, { version, schema: 'failsafe', logLevel: 'silent' });
          expect(flat(other)).toEqual(flat(both.model));
        }
      }),
      { numRuns: runs(400) },
    );
  });
});

/** Texts by path, so that nulls and empty collections compare as equal. */
function flat(value: unknown, path = '', result: Record<string, string> = {}): Record<string, string> {
  if (typeof value === 'object' && value !== null) {
    for (const [key, field] of Object.entries(value)) flat(field, `${path}/${key}`, result);
  } else if (value !== null && !['', 'null', '~'].includes(String(value))) result[path] = String(value);
  return result;
}
