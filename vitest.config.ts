import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { memoryFolder } from './test/support/memory-folder.ts';

// The programs that tests start load hundreds of modules, which takes Node a second without the code that it kept from the last time.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/node-compile', import.meta.url));

const isolatedGit = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

// A third of the time of the quick suite would go into repositories on a disk, which are removed at once. Others test what a disk does.
const memory = memoryFolder();
const quickEnv = { ...isolatedGit, ...(memory === undefined ? {} : { TMPDIR: memory }) };

const BESIDE_CODE = '{kptfile-schema,src,controllers,examples,scripts}/**';
/** Kills, competing processes, large repositories, whole corpora: more than some seconds each. */
const PROCESS = '**/*.process.test.ts';
/** Properties whose every run takes long, or starts git or writes a repository; the property suite has them with all their runs. */
const SLOW_PROPERTIES = [
  'src/git/{engines,objects/pack,refs,remote/client,signing}/**/*.property.test.ts',
  'src/{expression,kubernetes,package/model/record,package/store,server/authentication,starlark/machine}/*.property.test.ts',
];
/** Suites of their own, with what they need. */
const APART = [
  'test/attack/**',
  'test/soak/**',
  'test/conformance/**',
  // Minutes of sequences; the property suite has them.
  'test/pull-requests/**',
  'test/go/**',
  'test/forge/**',
  'test/cluster/**',
  'test/image/**',
];

// A loaded machine takes several times as long as an idle one.
const QUICK = { testTimeout: 60_000, hookTimeout: 60_000 };
const SLOW = { testTimeout: 300_000, hookTimeout: 120_000 };

export default defineConfig({
  test: {
    env: isolatedGit,
    pool: 'forks',
    maxWorkers: availableParallelism(),
    // Each file has a process of its own: without this all of them transform the same modules.
    fsModuleCache: true,
    // A condition that is polled is the point, not how soon it holds: a second is too little on a loaded machine.
    expect: { poll: { timeout: 30_000, interval: 10 } },
    reporters: ['default', './test/support/suite-reporter.ts'],
    projects: [
      {
        extends: true,
        // A process for each file would cost half of their time, for the modules that all of them load. A test leaves nothing behind in it.
        test: {
          name: 'unit',
          include: [`${BESIDE_CODE}/*.test.ts`],
          exclude: [PROCESS, ...SLOW_PROPERTIES],
          isolate: false,
          env: quickEnv,
          ...QUICK,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts'],
          exclude: [PROCESS, ...APART],
          env: quickEnv,
          ...QUICK,
        },
      },
      {
        extends: true,
        test: {
          name: 'conformance',
          include: ['test/conformance/**/*.test.ts'],
          // One server for all of them.
          globalSetup: ['test/conformance/support/global-setup.ts'],
          // They keep nothing in this process but clients of that server.
          isolate: false,
          ...QUICK,
        },
      },
      {
        extends: true,
        test: {
          // The property tests of the projects above once more, with all their runs.
          name: 'property',
          include: ['**/*.property.test.ts'],
          env: { ...isolatedGit, SLUICE_RUNS: 'full' },
          ...SLOW,
        },
      },
      {
        extends: true,
        test: { name: 'process', include: [PROCESS], exclude: ['test/attack/**', 'node_modules/**'], ...SLOW },
      },
      {
        extends: true,
        test: {
          name: 'attack',
          include: ['test/attack/**/*.test.ts'],
          ...SLOW,
        },
      },
      {
        extends: true,
        test: {
          // Programs written in Go; building them takes minutes.
          name: 'go',
          include: ['test/go/**/*.test.ts'],
          ...QUICK,
        },
      },
      {
        extends: true,
        test: {
          // A Gitea, which is built from source; that takes minutes.
          name: 'forge',
          include: ['test/forge/**/*.test.ts'],
          globalSetup: ['test/forge/support/global-setup.ts'],
          testTimeout: 180_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          // A real control plane, which is built from source; that takes minutes. The conformance tests judge it too.
          name: 'cluster',
          include: ['test/cluster/**/*.test.ts', 'test/conformance/**/*.test.ts'],
          exclude: ['test/cluster/faults/**'],
          globalSetup: ['test/cluster/support/global-setup.ts'],
          testTimeout: 180_000,
          // A hook starts programs up to four times, one after the other, each within MAX_START_MS (test/cluster/support/component.ts).
          hookTimeout: 500_000,
        },
      },
      {
        extends: true,
        // The steps of the Dockerfile, in a Debian root; making that takes a minute.
        test: { name: 'image', include: ['test/image/**/*.test.ts'], testTimeout: 120_000, hookTimeout: 600_000 },
      },
      {
        extends: true,
        test: {
          // Installations of Sluice on control planes of their own, which the tests break for minutes.
          name: 'cluster-faults',
          include: ['test/cluster/faults/**/*.test.ts'],
          globalSetup: ['test/cluster/support/programs-setup.ts'],
          testTimeout: 900_000,
          hookTimeout: 180_000,
        },
      },
      {
        extends: true,
        test: { name: 'soak', include: ['test/soak/**/*.test.ts'], testTimeout: 600_000, hookTimeout: 120_000 },
      },
    ],
  },
});
