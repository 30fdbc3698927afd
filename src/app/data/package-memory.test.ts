import { expect, test } from 'vitest';
import { messageOf } from '../../foundation/sluice-error.ts';
import type { ManagedFieldsEntry } from '../../resource/object/object.ts';
import { PackageMemory } from './package-memory.ts';

const ENTRY: ManagedFieldsEntry = {
  ...{ manager: 'kubectl', operation: 'Apply', apiVersion: 'porch.kpt.dev/v1alpha1' },
  ...{ fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': {} } },
};

function memory() {
  const topics = new Map<string, Map<string, string>>();
  const problems: string[] = [];
  const notes = (topic: string) => {
    const table = topics.get(topic) ?? new Map<string, string>();
    topics.set(topic, table);
    return table as never;
  };
  return { topics, problems, of: new PackageMemory({ notes }, (error) => problems.push(messageOf(error))) };
}

test('what is noted is read', () => {
  const { of, problems } = memory();
  of.owners.revisions.set('uid', [ENTRY]);
  of.versions.set('default/apps.web.v1', { etag: 'abc', resourceVersion: '7' });
  expect(of.owners.revisions.get('uid')).toEqual([ENTRY]);
  expect(of.owners.resources.get('uid')).toBeUndefined();
  expect(of.versions.get('default/apps.web.v1')).toEqual({ etag: 'abc', resourceVersion: '7' });
  expect(problems).toEqual([]);
});

test.each(['', '{', '[1]', '[{"manager":"kubectl"}]', '"text"'])(
  'damaged field owners are none, which is reported once: %s',
  (text) => {
    const { of, topics, problems } = memory();
    topics.get('field-owners/packagerevisions')?.set('uid', text);
    for (let turn = 0; turn < 2; turn += 1) expect(of.owners.revisions.get('uid')).toBeUndefined();
    expect(problems).toEqual([
      expect.stringContaining('"uid" of field-owners/packagerevisions in the database is damaged'),
    ]);
  },
);

test('a damaged version is none', () => {
  const { of, topics, problems } = memory();
  topics.get('versions/packagerevisions')?.set('default/apps.web.v1', 'abc');
  expect(of.versions.get('default/apps.web.v1')).toBeUndefined();
  expect([...of.versions.names()]).toEqual([]);
  expect(problems).toHaveLength(1);
});
