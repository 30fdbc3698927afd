import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { packageRevisionKind } from '../kinds/porch/package-revision.ts';
import { compileFieldSelector, fieldSelector, formatFieldSelector } from './field-selector.ts';

const object = {
  apiVersion: 'porch.kpt.dev/v1alpha1',
  kind: 'PackageRevision',
  metadata: { name: 'blue.web.v1', namespace: 'default' },
  spec: {
    packageName: 'apps/web',
    lifecycle: 'Draft',
    packageMetadata: { labels: { 'example.org/app': 'a=b' } },
  },
};
const matches = (text: string) => compileFieldSelector(fieldSelector(text), packageRevisionKind)(object);

describe('field selectors', () => {
  test.each([
    ['', true],
    ['metadata.name=blue.web.v1', true],
    ['metadata.namespace==default,spec.packageName=apps/web', true],
    ['metadata.namespace!=default', false],
    ['spec.lifecycle=Draft , spec.lifecycle!=Published', true],
    ['spec.revision=0', true],
    ['spec.revision=1', false],
    ['spec.workspaceName=', true],
    ['spec.packageMetadata.labels[example.org/app]=a\\=b', true],
    ['spec.packageMetadata.labels[other]=x', false],
    ['spec.packageMetadata.labels[constructor]=x', false],
  ])('%j gives %s', (text, expected) => {
    expect(matches(text)).toBe(expected);
  });

  test.each([
    ['spec.tasks=1', '"spec.tasks" is not a known field selector'],
    ['spec.packageMetadata.labels[]=x', 'is not a known field selector'],
    ['spec.lifecycle=Nonsense', 'unsupported fieldSelector value "Nonsense"'],
    ['spec.packageMetadata.labels[app]=', 'unsupported fieldSelector value "" for field'],
    ['spec.packageMetadata.labels[app]!=x', 'unsupported fieldSelector operator "!=" for field'],
    ['spec.repository', 'column 1: "spec.repository" is not "field=value"'],
    ['metadata.name=a,=b', 'column 17'],
    ['metadata.name=a=b', '"=" inside a value is written'],
    ['metadata.name=a\\b', '"\\" may stand before'],
    ['metadata.name=a\\', '"\\" may stand before'],
    ['x'.repeat(70_000), 'characters'],
  ])('refuses %.40j', (text, message) => {
    expect(() => matches(text)).toThrow(
      expect.objectContaining({ code: 'BadRequest', message: expect.stringContaining(message) }),
    );
  });

  test('values with special characters round-trip through the text form', () => {
    const value = fc.string().filter((text) => text.trim() === text);
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            path: fc.constant('metadata.name'),
            operator: fc.constantFrom('=' as const, '!=' as const),
            value,
          }),
        ),
        (requirements) => {
          expect(fieldSelector(formatFieldSelector({ requirements }))).toEqual({ requirements });
        },
      ),
      { numRuns: runs(100) },
    );
  });
});
