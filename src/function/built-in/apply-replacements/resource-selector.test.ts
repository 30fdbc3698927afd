import { expect, test } from 'vitest';
import { run } from './testing.ts';

const SELECTIONS: [select: string, selected: readonly string[]][] = [
  ['select: {}', ['settings', 'a', 'b', 'ab', 'ns']],
  ['select: {kind: Deployment}', ['a', 'b', 'ab']],
  ['select: {kind: Deploy}', []],
  ['select: {kind: "Deploy.*", name: "[ab]"}', ['a', 'b']],
  ['select: {group: apps, version: "v[12]"}', ['a', 'b']],
  ['select: {version: v3}', ['ab']],
  ['select: {namespace: default, kind: Deployment}', ['a', 'ab']],
  ['select: {namespace: two}', ['b']],
  ['select: {labelSelector: "tier in (x,y)"}', ['a', 'b']],
  ['select: {labelSelector: "tier=x", kind: Job}', []],
  ['select: {annotationSelector: "!owner", kind: Deployment}', ['b', 'ab']],
  ['select: {kind: Deployment}\n      reject: [{name: a}, {name: b}]', ['ab']],
  ['select: {kind: Deployment}\n      reject: [{name: a, version: v2}, {}]', ['a', 'b', 'ab']],
  ['select: {kind: Deployment}\n      reject: [{name: "a.*"}]', ['b']],
  ['select: {kind: Deployment}\n      reject: [{labelSelector: tier=y}]', ['a', 'ab']],
  ['select: {kind: Deployment}\n      reject: [{labelSelector: tier, name: b}]', ['a', 'ab']],
  ['select: {name: before}', ['ab']],
  ['select: {name: earlier, kind: CronJob, namespace: old}', ['ab']],
];

test.each(SELECTIONS)('%s', async (select, selected) => {
  const resources = [
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\nvalue: new\nfield: old\n',
    'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n  labels: {tier: x}\n  annotations: {owner: me}\nfield: old\n',
    'apiVersion: apps/v2\nkind: Deployment\nmetadata:\n  name: b\n  namespace: two\n  labels: {tier: y}\nfield: old\n',
    'apiVersion: extensions/v3\nkind: Deployment\nmetadata:\n  name: ab\n  annotations:\n    internal.config.kubernetes.io/previousNames: before,earlier\n    internal.config.kubernetes.io/previousKinds: Deployment,CronJob\n    internal.config.kubernetes.io/previousNamespaces: default,old\nfield: old\n',
    'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ns\nfield: old\n',
  ].join('---\n');
  const { files, messages } = await run(
    resources,
    `- source: {kind: ConfigMap, namespace: default, name: settings, fieldPath: value}\n  targets:\n    - ${select}\n      fieldPaths: [field]\n`,
  );
  expect(messages).toEqual([]);
  const changed = (files['resources.yaml'] ?? '').split('---\n').filter((text) => text.includes('field: new'));
  expect(changed.map((text) => /name: (\w+)/.exec(text)?.[1])).toEqual(selected);
});
