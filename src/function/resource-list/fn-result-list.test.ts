import { expect, test } from 'vitest';
import { kptfile, render } from '../pipeline/testing.ts';
import { fnResultList } from './fn-result-list.ts';

const WEB = 'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n';

test('the results of a pipeline are written as kpt writes them', async () => {
  const pipeline = '  mutators:\n    - image: mark\n      name: marker\n  validators:\n    - image: refuse:v1\n';
  const outcome = await render({ Kptfile: kptfile(pipeline), 'web.yaml': WEB });
  expect(fnResultList(outcome)).toEqual({
    apiVersion: 'kpt.dev/v1',
    kind: 'FunctionResultList',
    metadata: { name: 'fnresults' },
    exitCode: 1,
    items: [
      { image: 'ghcr.io/kptdev/krm-functions-catalog/mark:latest', exitCode: 0 },
      {
        image: 'ghcr.io/kptdev/krm-functions-catalog/refuse:v1',
        exitCode: 1,
        results: [
          {
            message: 'no deployments',
            severity: 'error',
            resourceRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
            field: { path: 'kind' },
            file: { path: 'web.yaml', index: 0 },
          },
        ],
      },
    ],
  });
});

test('an unreadable package has its own exit code; a function that could not run reports why', async () => {
  expect(fnResultList(await render({}))).toMatchObject({ exitCode: 1, items: [] });
  const outcome = await render({ Kptfile: kptfile('  mutators:\n    - exec: ./run.sh\n') });
  expect(fnResultList(outcome)).toMatchObject({ exitCode: 1, items: [{ exec: './run.sh', exitCode: 1 }] });
  expect(fnResultList(outcome).items[0]?.stderr).toContain('it is not built in');
});
