import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { skipFor } from '../../../test/support/skip.ts';
import { writeKustomization } from './kustomization.ts';
import { manifestsOf } from './manifests.ts';

// Optional: the test is skipped with a reason where it is not installed.
const KUBECTL = 'kubectl';

describe('real packages', () => {
  const root = fileURLToPath(new URL('../../../../shared/corpus/packages', import.meta.url));
  const corpusMissing = !existsSync(root) && `no real packages at ${root}`;

  test('are written, and writing the result again gives the same bytes', skipFor(corpusMissing), () => {
    const packages = findPackages(root);
    expect(packages.length).toBeGreaterThan(10);
    for (const folder of packages) {
      const first = manifestsOf(readFiles(folder));
      if (first.manifests === undefined) throw new Error(`${folder}: ${first.refused.message}`);
      const again = manifestsOf(first.manifests.files);
      expect(again.manifests?.files, folder).toEqual(first.manifests.files);
      expect(again.manifests?.objects, folder).toBe(first.manifests.objects);
    }
  });

  const kubectl = spawnSync(KUBECTL, ['kustomize', '--help'], { stdio: 'ignore' }).status === 0;

  test(
    'give the same kustomize output as their source files',
    skipFor(corpusMissing || (!kubectl && 'there is no kubectl with kustomize')),
    () => {
      for (const folder of findPackages(root).filter((_, place) => place % 4 === 0)) {
        const files = readFiles(folder);
        const { manifests } = manifestsOf(files);
        if (manifests === undefined) throw new Error(folder);
        const source = new Map([...manifests.files.keys()].map((path) => [path, files.get(path) ?? new Uint8Array()]));
        expect(kustomize(manifests.files), folder).toBe(kustomize(source));
      }
    },
  );

  function kustomize(files: ReadonlyMap<string, Uint8Array>): string {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-manifests-'));
    try {
      const owner = { target: 't', repository: 'r', package: 'p' };
      for (const [path, data] of [
        ...files,
        ['kustomization.yaml', writeKustomization(owner, [...files.keys()])] as const,
      ]) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), data);
      }
      return execFileSync(KUBECTL, ['kustomize', folder], { encoding: 'utf8' });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  function findPackages(folder: string): string[] {
    if (existsSync(join(folder, 'Kptfile'))) return [folder];
    const below = readdirSync(folder).map((name) => join(folder, name));
    return below.filter((path) => statSync(path).isDirectory()).flatMap(findPackages);
  }

  function readFiles(folder: string): Map<string, Uint8Array> {
    const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const paths = names.map((entry) => join(entry.parentPath, entry.name));
    return new Map(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path)]));
  }
});
