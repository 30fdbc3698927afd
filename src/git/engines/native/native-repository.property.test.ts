import { fsck, git, initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { describeGitRepository, describeRefs } from '../../git-repository.conformance.ts';
import { openRepository } from '../../open/open-repository.ts';

const harness = { initBare, git, fsck, refsOf, temporaryFolder };

describeGitRepository('native', {
  ...harness,
  open: (path, options) => openRepository(path, { ...options, engine: 'native' }),
});

describeRefs('native, all refs packed', {
  ...harness,
  open: (path, options) => openRepository(path, { ...options, engine: 'native', packRefsFrom: 1 }),
});
