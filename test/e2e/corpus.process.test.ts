import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { editKptfile, type KptfileEdit } from '../../kptfile-schema/index.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { sluice } from '../support/cli.ts';
import { type CorpusPackage, corpusMissing, corpusPackages } from '../support/corpus.ts';
import { startGitServer } from '../support/git/git-server.ts';
import { pushDraft } from '../support/push-draft.ts';
import { scratchRepository } from '../support/scratch-repository.ts';
import { skipFor } from '../support/skip.ts';

const AUTO: KptfileEdit[] = [
  { op: 'setAnnotation', key: 'config.porch.kpt.dev/auto-lifecycle-mgmt', value: 'true' },
  { op: 'setAnnotation', key: 'approval.nephio.org/policy', value: 'initial' },
];

/** Requires functions that run only as containers, which are not available here. */
function specialised({ files }: CorpusPackage): boolean {
  return files.get('Kptfile')?.includes('docker.io/nephio/') === true;
}

/** The files of a package with edits of its Kptfile. */
function withEdits({ files }: CorpusPackage, edits: KptfileEdit[]): Map<string, Buffer> {
  const kptfile = Buffer.from(editKptfile(files.get('Kptfile')?.toString() ?? '', edits));
  return new Map([...files, ['Kptfile', kptfile]]);
}

/** The server of Git is on this machine. */
const environment = { SLUICE_ALLOW_GIT_HOST: '127.0.0.1' };

describe('real packages', skipFor(corpusMissing), () => {
  test('are published and delivered from a pushed draft, over smart HTTP; the others have an explanation', async () => {
    await using scratch = await scratchRepository();
    const server = await startGitServer({ root: scratch.folder });
    try {
      const edge = await initRepository(join(scratch.folder, 'edge.git'));
      await edge.close();
      const packages = corpusPackages();
      expect(packages.length).toBeGreaterThan(10);
      // Every third one is not marked and waits for a person. Claims have no pools here, so their gates stay closed.
      const waiting = packages.filter((_, position) => position % 3 === 2);
      for (const pack of packages)
        await pushDraft(scratch, pack.name, withEdits(pack, waiting.includes(pack) ? [] : AUTO));
      const config = join(scratch.folder, 'conf');
      await mkdir(config);
      await writeFile(
        join(config, 'all.yaml'),
        [
          'apiVersion: config.porch.kpt.dev/v1alpha1',
          'kind: Repository',
          'metadata: { name: packages }',
          `spec: { type: git, git: { repo: "${server.url}/packages.git" } }`,
          '---',
          'apiVersion: sluice.dev/v1alpha1',
          'kind: PackagePolicy',
          'metadata: { name: kptfile-approvals }',
          'spec: { kptfileApprovals: true }',
          '---',
          'apiVersion: sluice.dev/v1alpha1',
          'kind: DeliveryTarget',
          'metadata: { name: edge }',
          `spec: { selector: { repositories: [packages] }, allowSecrets: true, git: { repo: "${server.url}/edge.git", directory: clusters/edge, createBranch: true } }`,
          '',
        ].join('\n'),
      );
      const data = join(scratch.folder, 'data');
      const up = await sluice(['up', '--data', data, '--config', config, '--until-idle'], {
        timeout: 120_000,
        environment,
      });
      expect(up.code, up.stderr + up.stdout).toBe(0);
      const runAgain = async () => {
        const again = await sluice(['up', '--data', data, '--config', config, '--until-idle'], {
          timeout: 120_000,
          environment,
        });
        expect(again.code, again.stderr).toBe(0);
      };
      const refs = (await scratch.git('for-each-ref', '--format=%(refname)')).split('\n');
      for (const pack of packages) {
        const published = refs.includes(`refs/tags/${pack.name}/v1`);
        expect(published, `${pack.name}: ${up.stdout}`).toBe(!waiting.includes(pack) && !specialised(pack));
      }
      const delivered = await scratch.git('-C', '../edge.git', 'ls-tree', '-r', '--name-only', 'main');
      const folders = new Set(delivered.split('\n').map((path) => path.split('/')[2]));
      expect(folders.size).toBeGreaterThan(5);
      expect(delivered).not.toContain('Kptfile');
      for (const pack of packages.filter((each) => waiting.includes(each) || specialised(each))) {
        const why = await sluice(['why', `packages.${pack.name}.v1`, '--data', data], { environment });
        expect(why.code, why.stderr).toBe(0);
        expect(why.stdout).toMatch(/Draft/);
        if (specialised(pack)) expect(why.stdout).toMatch(/could not be rendered: .*nephio/);
      }
      expect(await scratch.git('fsck', '--strict', '--no-dangling')).toBe('');
      expect(await scratch.git('-C', '../edge.git', 'fsck', '--strict', '--no-dangling')).toBe('');
      // Another run changes no ref.
      const before = await scratch.git('for-each-ref');
      const edgeBefore = await scratch.git('-C', '../edge.git', 'for-each-ref');
      await runAgain();
      expect(await scratch.git('for-each-ref')).toBe(before);
      expect(await scratch.git('-C', '../edge.git', 'for-each-ref')).toBe(edgeBefore);
    } finally {
      await server.close();
    }
  });
});
