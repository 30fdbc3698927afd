import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { defineKind } from '../../resource/schema/define-kind.ts';
import { widgetKind } from '../../resource/schema/testing.ts';
import { partialMetadata } from './partial-metadata.ts';
import { bookmarkTable, includeObjectOf, tableOf } from './table.ts';

const now = Date.parse('2026-02-01T00:05:00Z');
const repository = repositoryKind.complete({
  metadata: { name: 'blueprints', namespace: 'default', creationTimestamp: '2026-02-01T00:00:00Z' },
  spec: { git: { repo: '/srv/x' }, deployment: false },
});

describe('tableOf', () => {
  test('shows the columns of the kind; the name is marked, what is missing is null', () => {
    const table = tableOf(repositoryKind, [repository], { now, metadata: { resourceVersion: '7', continue: 'next' } });
    expect(table.columnDefinitions.map(({ name, type, format, priority }) => [name, type, format, priority])).toEqual([
      ['Name', 'string', 'name', 0],
      ['Type', 'string', '', 0],
      ['Content', 'string', '', 0],
      ['Sync schedule', 'string', '', 0],
      ['Deployment', 'boolean', '', 0],
      ['Ready', 'string', '', 0],
      ['Address', 'string', '', 0],
      ['Branch', 'string', '', 1],
      ['Transport', 'string', '', 1],
      ['Last webhook', 'date', '', 1],
      ['Reason', 'string', '', 1],
      ['Message', 'string', '', 1],
      ['Age', 'date', '', 0],
    ]);
    expect(table).toMatchObject({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: '7', continue: 'next' },
    });
    expect(table.rows).toEqual([
      {
        cells: ['blueprints', 'git', 'Package', null, false, null, '/srv/x', 'main', null, null, null, null, '5m'],
        object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: repository.metadata },
      },
    ]);
  });

  test('the reason of a package revision is shortened between characters', () => {
    const revision = (problem: string) => ({ metadata: { name: 'a', annotations: { 'sluice.dev/problem': problem } } });
    const reason = packageRevisionKind.printerColumns.find(({ name }) => name === 'Reason');
    expect(reason?.value(revision('x'.repeat(160)) as never)).toBe('x'.repeat(160));
    expect(reason?.value(revision('😀'.repeat(161)) as never)).toBe(`${'😀'.repeat(159)}…`);
    expect(reason?.value({ metadata: { name: 'a' } } as never)).toBeUndefined();
  });

  test('a kind without columns has name and age', () => {
    const widget = widgetKind.complete({ metadata: { name: 'a' }, spec: {} });
    const table = tableOf(widgetKind, [widget], { now });
    expect(table.columnDefinitions.map((column) => column.name)).toEqual(['Name', 'Age']);
    expect(table.rows[0]?.cells).toEqual(['a', null]);
  });

  test('a kind without a name column gets one in front; an invalid time is shown as such', () => {
    const kind = defineKind({
      group: 'x.example',
      version: 'v1',
      kind: 'Timer',
      plural: 'timers',
      description: 'A timer.',
      spec: z.object({ at: z.string() }),
      printerColumns: [{ name: 'At', type: 'date', value: (object) => object.spec.at }],
    });
    const timers = ['soon', '2026-02-01T00:04:18Z'].map((at, index) =>
      kind.complete({ metadata: { name: `t${index}` }, spec: { at } }),
    );
    expect(tableOf(kind, timers, { now }).rows.map((row) => row.cells)).toEqual([
      ['t0', '<invalid>'],
      ['t1', '42s'],
    ]);
  });

  test('contains as much of the objects as is requested', () => {
    expect(tableOf(repositoryKind, [repository], { now, includeObject: 'None' }).rows[0]).not.toHaveProperty('object');
    expect(tableOf(repositoryKind, [repository], { now, includeObject: 'Object' }).rows[0]?.object).toBe(repository);
  });

  test('later events of a watch have no column definitions, and the cells of a bookmark are empty', () => {
    const later = tableOf(repositoryKind, [repository], { now, withoutColumns: true });
    expect(later.columnDefinitions).toEqual([]);
    expect(later.rows).toHaveLength(1);
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    const bookmark = bookmarkTable(repositoryKind, { resourceVersion: '9', annotations }, false);
    expect(bookmark.columnDefinitions).toHaveLength(13);
    expect(bookmark.metadata).toEqual({ resourceVersion: '9' });
    expect(bookmark.rows).toEqual([
      {
        cells: Array(13).fill(null),
        object: partialMetadata({ metadata: { name: '', resourceVersion: '9', annotations } }),
      },
    ]);
  });
});

test('includeObject is one of three words', () => {
  expect([undefined, null, '', 'None', 'Object', 'Metadata'].map(includeObjectOf)).toEqual([
    'Metadata',
    'Metadata',
    'Metadata',
    'None',
    'Object',
    'Metadata',
  ]);
  expect(() => includeObjectOf('__proto__')).toThrow(
    expect.toSatisfy((error) => isSluiceError(error, 'BadRequest') && /must be 'Metadata'/.test(error.message)),
  );
});
