import { expect } from 'vitest';
import { runFunction, type TestRun } from '../support/testing.ts';
import { applyReplacements } from './apply-replacements.ts';

export function config(replacements: string): string {
  return `apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata:\n  name: copy\nreplacements:\n${replacements}`;
}

/** Runs it with replacements of which only the list is given. */
export function run(resources: string, replacements: string, tag?: string): Promise<TestRun> {
  return runFunction(applyReplacements, resources, config(replacements), tag);
}

export function thing(name: string, rest: string): string {
  return `apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: ${name}\n${rest}`;
}

/** One replacement from the field of `from` into fields of `to`. */
export function copy(field: string, paths: readonly string[], options = '', sourceOptions = ''): string {
  const list = paths.map((path) => `        - ${path}\n`).join('');
  const source = sourceOptions === '' ? '' : `    options: ${sourceOptions}\n`;
  const target = options === '' ? '' : `      options: ${options}\n`;
  return `- source:\n    name: from\n    fieldPath: ${field}\n${source}  targets:\n    - select:\n        name: to\n      fieldPaths:\n${list}${target}`;
}

export interface Case {
  readonly what: string;
  readonly from: string;
  readonly to: string;
  readonly field: string;
  readonly paths: readonly string[];
  readonly options?: string;
  readonly sourceOptions?: string;
  /** The resulting target; or the start of the message of an error. */
  readonly expected?: string;
  readonly error?: string;
}

export const LIST = 'list:\n  - name: web\n    image: nginx:1\n  - name: db\n    image: pg:2\n';

/** Checks one case, and that a second run changes nothing. */
export async function check({ from, to, field, paths, options, sourceOptions, expected, error }: Case): Promise<void> {
  const replacements = copy(field, paths, options, sourceOptions);
  const resources = `${thing('from', from)}---\n${thing('to', to)}`;
  const { files, messages } = await run(resources, replacements);
  const text = files['resources.yaml'] ?? '';
  const [before, after = ''] = text.split('---\n');
  if (error !== undefined) {
    expect(messages).toEqual([expect.stringContaining(`error: ${error}`)]);
    return;
  }
  expect(messages).toEqual([]);
  expect(before).toBe(thing('from', from));
  expect(after).toBe(thing('to', expected ?? ''));
  // An index beyond the end adds a part at every run.
  if (options?.match(/-1|7/)) return;
  expect((await run(text, replacements)).files['resources.yaml']).toBe(text);
}
