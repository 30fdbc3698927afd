import { expect, test } from 'vitest';
import { deleteAnnotations } from './delete-annotations.ts';
import { runFunction } from './support/testing.ts';

const KEYS = { annotationKeys: 'example.org/owner, example.org/since' };

test('removes annotations, and an empty field', async () => {
  const { files, messages } = await runFunction(
    deleteAnnotations,
    `apiVersion: v1
kind: Secret
metadata:
  name: a
  annotations:
    example.org/owner: blue
    example.org/since: today
---
apiVersion: v1
kind: Secret
metadata:
  name: b
  annotations:
    # stays
    example.org/other: x
    example.org/owner: blue
`,
    KEYS,
  );
  expect(files['resources.yaml']).toBe(`apiVersion: v1
kind: Secret
metadata:
  name: a
---
apiVersion: v1
kind: Secret
metadata:
  name: b
  annotations:
    # stays
    example.org/other: x
`);
  expect(messages).toEqual([
    'info: The following annotations were deleted from the resources',
    'info: Annotation: [example.org/owner] removed from resource: [a]',
    'info: Annotation: [example.org/since] removed from resource: [a]',
    'info: Annotation: [example.org/owner] removed from resource: [b]',
  ]);
});

test('warns if there is nothing to remove, and needs keys', async () => {
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n';
  const { files, messages } = await runFunction(deleteAnnotations, secret, KEYS);
  expect(files['resources.yaml']).toBe(secret);
  expect(messages).toEqual(['warning: None of the resources had the provided annotations to delete']);
  await expect(runFunction(deleteAnnotations, secret, { other: 'x' })).rejects.toThrow('`data.annotationKeys`');
});
