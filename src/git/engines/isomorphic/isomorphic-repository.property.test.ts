import { fsck, git, initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { describeGitRepository } from '../../git-repository.conformance.ts';
import { openRepository } from '../../open/open-repository.ts';

describeGitRepository('isomorphic-git', {
  open: (path, options) => openRepository(path, { ...options, engine: 'isomorphic-git' }),
  initBare,
  git,
  fsck,
  refsOf,
  temporaryFolder,
});
