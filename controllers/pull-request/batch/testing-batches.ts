import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import type { Proposals } from '../../../test/support/proposal-bench.ts';

/** What tests of shared pull requests read of Git and the host. */
export function readingsOf(at: () => Proposals) {
  return {
    /** Names of the branches that proposals share, one on each line. */
    branches: (): string => git(at().path, ['for-each-ref', '--format=%(refname:short)', 'refs/heads/sluice']).trim(),
    /** How many pull requests were opened. */
    creations: (): number => at().forge.calls.filter((method) => method === 'open').length,
    headOf: async (number: number): Promise<string> => (await at().forge.get(number)).head.commit,
    lifecycles: (names: readonly string[]): (PackageRevision['lifecycle'] | undefined)[] =>
      names.map((name) => at().world.store.find(name)?.lifecycle),
    treeAt: (commit: string, path: string): string => git(at().path, ['rev-parse', `${commit}:${path}`]).trim(),
  };
}
