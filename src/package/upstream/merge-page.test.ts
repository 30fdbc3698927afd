import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { UPDATE_STRATEGIES, type UpdateStrategy } from './revision-source.ts';
import { updatePackage } from './update-package.ts';

/** Every case of docs/merge.md is executed: the page cannot describe a merge that does not happen. */
const page = readFileSync(new URL('../../../docs/merge.md', import.meta.url), 'utf8');

interface Case {
  readonly section: string;
  readonly number: number;
  readonly title: string;
  /** Cells of the table: the three sides and the result. */
  readonly sides: readonly [original: string, updated: string, local: string];
  readonly result: string;
  readonly reported: string | undefined;
}

type Texts = ReadonlyMap<string, string>;

/** How a cell is read as the files of a package, by the section that it is in. */
const READERS: Readonly<Record<string, (cell: unknown) => Texts>> = {
  Fields: (cell) => resource('apps/v1', 'Deployment', cell),
  Nulls: (cell) => resource('apps/v1', 'Deployment', cell),
  'Lists with keys': (cell) => resource('v1', 'Pod', cell),
  'Other lists': (cell) => resource('v1', 'Pod', cell),
  'Custom resources': (cell) => resource('example.com/v1', 'Shop', cell),
  Resources: configMaps,
  'Other files': (cell) => new Map(Object.entries(cell as Record<string, string>)),
  Texts: (cell) => (cell === null ? new Map() : new Map([['a.yaml', `${HEAD}${cell as string}`]])),
  Kptfile: kptfile,
  'Packages within the package': configMaps,
};
const HEAD = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n';

function resource(apiVersion: string, kind: string, cell: unknown): Texts {
  const { metadata, ...spec } = (cell ?? {}) as Record<string, unknown>;
  const object = { apiVersion, kind, metadata: { name: 'one', ...(metadata as object | undefined) }, spec };
  return new Map([['a.yaml', stringify(object)]]);
}

/** `{file: {resource: value}}`; a value is that of a ConfigMap, or has its name, namespace, mark and value. */
function configMaps(cell: unknown): Texts {
  const files = Object.entries(cell as Record<string, Record<string, unknown> | string>);
  return new Map(
    files.map(([path, resources]) => [
      path,
      typeof resources === 'string'
        ? `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${resources}\n`
        : Object.entries(resources)
            .map(([name, value]) => configMap(name, value))
            .join('---\n'),
    ]),
  );
}

function configMap(name: string, value: unknown): string {
  const own = (typeof value === 'object' ? value : { key: value }) as Record<string, string>;
  const mark = own.mark === undefined ? '' : ` # kpt-merge: ${own.mark}`;
  const namespace = own.namespace === undefined ? '' : `  namespace: ${own.namespace}\n`;
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:${mark}\n  name: ${own.name ?? name}\n${namespace}data:\n  key: ${own.key}\n`;
}

function kptfile(cell: unknown): Texts {
  const { metadata, ...rest } = cell as Record<string, unknown>;
  const object = {
    apiVersion: 'kpt.dev/v1',
    kind: 'Kptfile',
    metadata: { name: 'app', ...(metadata as object) },
    ...rest,
  };
  return new Map([['Kptfile', stringify(object)]]);
}

/** The tables with a column `original`: the sections above, and `Strategies`, whose cells are files. */
function cases(): Case[] {
  const found: Case[] = [];
  let section = '';
  for (const line of page.split('\n')) {
    if (line.startsWith('## ')) section = line.slice(3);
    const cells = line.split('|').map((cell) => cell.trim());
    const number = Number(cells[1]);
    if (!line.startsWith('|') || !Number.isInteger(number) || number === 0) continue;
    const [, , title = '', original = '', updated = '', local = '', result = '', ...rest] = cells;
    const reported = UNREPORTED.includes(section) ? undefined : rest[0];
    found.push({ section, number, title, sides: [original, updated, local], result, reported });
  }
  return found;
}

/** Sections without a column for the local changes that are reported. */
const UNREPORTED = ['Packages within the package', 'Texts', 'Strategies'];

function read(section: string, cell: string): Texts {
  const text = cell.replace(/^`+|`+$/g, '');
  if (cell === '—') return new Map();
  const value = section === 'Texts' ? (JSON.parse(`"${text}"`) as string) : (parse(text) as unknown);
  const reader = READERS[section];
  if (reader === undefined) throw new Error(`docs/merge.md has cases in the section ${section}, which has no reader`);
  return reader(value);
}

function update(strategy: UpdateStrategy, [original, updated, local]: readonly Texts[]) {
  const files = (texts: Texts = new Map()) =>
    new Map([...texts].map(([path, text]) => [path, { data: Buffer.from(text) }]));
  const merged = updatePackage({ local: files(local), original: files(original), updated: files(updated) }, strategy);
  const texts = new Map([...merged.files].map(([path, { data }]) => [path, data.toString('utf8')]));
  const fields = merged.overwritten.fields.map(({ resource, field }) =>
    resource.startsWith('ConfigMap/') ? `${resource} ${field}` : field,
  );
  return { texts, reported: [...merged.keptLocal, ...fields] };
}

/** What the files mean: the order of fields does not count, that of lists does. */
function meaning(texts: Texts): unknown {
  return Object.fromEntries(
    [...texts].map(([path, text]) => [
      path,
      path.endsWith('.yaml') || path.endsWith('Kptfile')
        ? parseAllDocuments(text).map((document) => document.toJS() as unknown)
        : text,
    ]),
  );
}

const all = cases();

test('docs/merge.md has at least 60 cases, numbered in order, and each names the behaviour of kpt', () => {
  expect(all.length).toBeGreaterThanOrEqual(60);
  expect(all.map(({ number }) => number)).toEqual(all.map((_, index) => index + 1));
  const rows = page.split('\n').filter((line) => /^\| \d+ \|/.test(line));
  for (const row of rows) expect(row.split('|').at(-2)?.trim(), row).not.toBe('');
});

describe.each([...new Set(all.map(({ section }) => section))])('%s', (section) => {
  test.each(all.filter((one) => one.section === section && section !== 'Strategies'))(
    '$number $title',
    ({ sides, result, reported }) => {
      const { texts, reported: found } = update(
        'resource-merge',
        sides.map((side) => read(section, side)),
      );
      const expected = read(section, result);
      if (section === 'Texts') expect(texts).toEqual(expected);
      expect(meaning(texts)).toEqual(meaning(expected));
      if (reported !== undefined) expect(found).toEqual(reported === 'no' ? [] : [reported.replaceAll('`', '')]);
    },
  );

  test.each(all.filter((one) => one.section === section && section === 'Strategies'))(
    '$number $title',
    ({ title, sides, result }) => {
      const strategy = UPDATE_STRATEGIES.find((one) => title.startsWith(`\`${one}\``));
      expect(strategy).toBeDefined();
      const texts = sides.map((side) => read('Other files', side));
      if (result === 'refused') {
        let refused: unknown;
        try {
          update(strategy as UpdateStrategy, texts);
        } catch (error) {
          refused = error;
        }
        expect(isSluiceError(refused, 'Refused')).toBe(true);
      } else expect(update(strategy as UpdateStrategy, texts).texts).toEqual(read('Other files', result));
    },
  );
});
