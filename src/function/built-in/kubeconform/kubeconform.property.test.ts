import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { FunctionResult } from '../../model/function-result.ts';
import { Resource } from '../../resource/resource.ts';
import { kubeconform } from './kubeconform.ts';

const words = fc.constantFrom(
  ...['type', 'properties', 'items', 'required', 'anyOf', 'not', 'enum', 'default', 'pattern', 'nullable', 'format'],
  ...['additionalProperties', 'x-kubernetes-validations', 'x-kubernetes-preserve-unknown-fields', 'rule', '__proto__'],
  ...[
    'x-kubernetes-int-or-string',
    'object',
    'array',
    'string',
    'integer',
    'spec',
    'template',
    'containers',
    '(a',
    '2',
  ],
);
const { value: anything } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: 'medium' },
    fc.oneof(words, fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
    fc.dictionary(words, tie('value'), { maxKeys: 4 }),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
}));

async function findings(...values: Readonly<Record<string, unknown>>[]): Promise<FunctionResult[]> {
  const results: FunctionResult[] = [];
  const items = values.map((value, index) => Resource.from(value, { file: 'a.yaml', index }));
  const config = Resource.from({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'c' },
    data: { strict: 'true' },
  });
  await kubeconform.run({ items, config, results }, { signal: new AbortController().signal });
  return results;
}

test('any resource, definition and schema gives findings, and no failure', async () => {
  await fc.assert(
    fc.asyncProperty(anything, anything, anything, async (schema, spec, names) => {
      const definition = (openAPIV3Schema: unknown, kind: unknown) => ({
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: 'd' },
        spec: {
          group: 'example.org',
          names: { kind, plural: 'pipes' },
          versions: [{ name: 'v1', schema: { openAPIV3Schema } }],
        },
      });
      const results = await findings(
        definition({ type: 'object', properties: { spec: schema } }, 'Pipe'),
        definition(schema, 'Tube'),
        { ...definition({}, names), spec },
        { apiVersion: 'example.org/v1', kind: 'Pipe', metadata: names, spec },
        { apiVersion: 'example.org/v1', kind: 'Tube', spec },
        { apiVersion: 'apps/v1', kind: 'Deployment', metadata: names, spec: { template: { spec }, selector: {} } },
      );
      for (const { message, file } of results) {
        expect(message).not.toBe('');
        expect(file?.path).toBe('a.yaml');
      }
    }),
    { numRuns: runs(100) },
  );
});
