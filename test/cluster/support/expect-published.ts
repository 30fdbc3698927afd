import { expect } from 'vitest';
import type { KeptInstallation } from './kept-installation.ts';
import { readPublications, readRefs, repeated, verifyStatements } from './publications.ts';

/**
 * Each of these revisions (`package/workspace`) is published once: in the history of Git, by a tag of its own, with statements that count,
 * and in the API. No revision number of a package occurs twice, and none is left out.
 */
export async function expectPublished(
  { admin, gitFolder, publicKey }: Pick<KeptInstallation, 'admin' | 'gitFolder' | 'publicKey'>,
  revisions: readonly string[],
  namespace = 'default',
): Promise<void> {
  const expected = [...revisions].sort();
  const publications = await readPublications(gitFolder);
  expect(publications.map((one) => `${one.package}/${one.workspace}`).sort()).toEqual(expected);
  const numbers = publications.map((one) => `${one.package}/v${one.revision}`);
  expect(repeated(numbers)).toEqual([]);
  expect(publications.filter(({ steps }) => steps.join() !== 'propose,approve')).toEqual([]);
  const packages = new Map<string, number[]>();
  for (const one of publications) packages.set(one.package, [...(packages.get(one.package) ?? []), one.revision]);
  for (const [name, revisions] of packages)
    expect(revisions, name).toEqual(Array.from({ length: revisions.length }, (_, index) => index + 1));

  expect([...(await readRefs(gitFolder, 'refs/tags'))].sort()).toEqual(
    numbers.map((name) => `refs/tags/${name}`).sort(),
  );
  expect(await readRefs(gitFolder, 'refs/heads')).toEqual(['refs/heads/main']);
  // The id of the repository is a statement too.
  expect(await verifyStatements(gitFolder, publicKey)).toContain(`${publications.length + 1} in band, 0 out of band`);

  const path = `/apis/porch.kpt.dev/v1alpha1/namespaces/${namespace}/packagerevisions`;
  const shown = async () => {
    const { body } = await admin.list(path);
    return body.items
      .map(({ spec }) => spec as Readonly<Record<string, unknown>>)
      .filter(({ revision }) => revision !== -1)
      .map(({ packageName, workspaceName, lifecycle }) => `${packageName}/${workspaceName} ${lifecycle}`)
      .sort();
  };
  // A write of another leader is shown after the next fetch.
  await expect.poll(shown, { timeout: 90_000, interval: 500 }).toEqual(expected.map((name) => `${name} Published`));
}
