import { expect, test } from 'vitest';
import { corpusMissing, corpusPackages } from '../../../../test/support/corpus.ts';
import { skipFor } from '../../../../test/support/skip.ts';
import type { FunctionResult } from '../../model/function-result.ts';
import { readResources } from '../../resource/read-resources.ts';
import { Resource } from '../../resource/resource.ts';
import { isResourcePath } from '../../resource/resource-path.ts';
import { kubeconform } from './kubeconform.ts';

const strict = Resource.from({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c' },
  data: { strict: 'true' },
});

test('real packages have no errors, only kinds without a schema', skipFor(corpusMissing), async () => {
  let result = 0;
  for (const { name, files } of corpusPackages()) {
    const texts = [...files].filter(([path]) => isResourcePath(path)).map(([path, data]) => [path, `${data}`] as const);
    const { resources } = readResources(new Map(texts));
    const results: FunctionResult[] = [];
    await kubeconform.run({ items: resources, config: strict, results }, { signal: new AbortController().signal });
    const others = results.filter(({ message }) => !message.startsWith('there is no schema for'));
    expect({ name, others }).toEqual({ name, others: [] });
    result += resources.length - results.length;
  }
  expect(result).toBeGreaterThan(100);
});
