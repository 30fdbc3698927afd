import { expect, test } from 'vitest';
import { markResources } from './mark-resources.ts';
import { withoutMergeKey } from './merge-key-comment.ts';

function marked(path: string, text: string): string | undefined {
  return markResources(new Map([[path, { data: Buffer.from(text) }]]))
    .get(path)
    ?.data.toString();
}

test('each resource gets the comment and the annotation of kpt, and keeps every other byte', () => {
  const text = `# two of them
apiVersion: v1
kind: Namespace
metadata:
  # its name
  name: example
---
apiVersion: apps/v1
kind: Deployment
metadata: # kpt-merge: far/upstream
    annotations:
      # why
      a: "1"
    namespace: near
    name: web
`;
  expect(marked('a.yaml', text)).toBe(`# two of them
apiVersion: v1
kind: Namespace
metadata: # kpt-merge: /example
  annotations:
    internal.kpt.dev/upstream-identifier: '|Namespace|default|example'
  # its name
  name: example
---
apiVersion: apps/v1
kind: Deployment
metadata: # kpt-merge: far/upstream
    annotations:
      internal.kpt.dev/upstream-identifier: apps|Deployment|far|upstream
      # why
      a: "1"
    namespace: near
    name: web
`);
});

test('marking twice changes nothing, and the annotation of a copy is replaced by that of its own upstream', () => {
  const text = 'apiVersion: v1\r\nkind: Service\r\nmetadata:\r\n  name: s\r\n';
  const once = marked('s.yaml', text) ?? '';
  expect(once).toContain("    internal.kpt.dev/upstream-identifier: '|Service|default|s'\r\n");
  expect(marked('s.yaml', once)).toBe(once);
  expect(marked('s.yaml', once.replace('default|s', 'default|of-another'))).toBe(once);
});

test('a Kptfile gets the annotation, and what is not written as lines stays as it is', () => {
  const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n';
  expect(marked('Kptfile', kptfile)).toBe(
    'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  annotations:\n    internal.kpt.dev/upstream-identifier: kpt.dev|Kptfile|default|web\n  name: web\n',
  );
  for (const text of [
    'apiVersion: v1\nkind: Service\nmetadata: { name: s }\n',
    'apiVersion: v1\nkind: Service\nmetadata: # kpt-merge: /s\n  name: s\n  annotations: {}\n',
    '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}\n',
    'a: text\n',
  ])
    expect(marked('s.yaml', text)).toBe(text);
});

test('a resource without its marks is the one that was marked', () => {
  for (const text of [
    'apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n',
    'apiVersion: v1\r\nkind: Service\r\nmetadata:\r\n  name: s\r\n  annotations:\r\n    a: b\r\n',
    'apiVersion: v1\nkind: Service\nmetadata:\n  annotations:\n    a: b\n  name: s',
  ])
    expect(withoutMergeKey(marked('s.yaml', text) ?? '')).toBe(text);
});
