import { expect, test } from 'vitest';
import { repositoryKind } from '../src/resource/kinds/repository.ts';
import { credentialsOf } from './credentials.ts';
import { objectBench } from './testing-objects.ts';

test('a reference without a name is none, as clients written in Go send it', async () => {
  await using bench = objectBench();
  const { client } = bench;
  const repositoryWith = (name: string) => {
    const git = { repo: 'https://git.example.com/apps.git', secretRef: { name } };
    return repositoryKind.complete({ metadata: { name: 'apps' }, spec: { git } });
  };
  const askedFor = (name: string) => credentialsOf(client, repositoryWith(name), { name });
  expect(askedFor('')).toBeUndefined();
  await expect(askedFor('auth')?.()).rejects.toThrow('Secret default/auth, which Repository default/apps refers to,');
});
