import { defineConfig } from 'vitest/config';

const isolatedGit = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

/** The Git servers of tests listen on this machine. The attacks run with what a server allows by itself. */
const localGit = { SLUICE_ALLOW_GIT_HOST: 'localhost,127.0.0.1,[::1]' };

export default defineConfig({
  test: {
    env: isolatedGit,
    pool: 'forks',
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          env: localGit,
          include: ['{kptfile-schema,src,controllers,examples,scripts}/**/*.test.ts'],
          // Property tests of some seconds; a loaded machine takes several times as long.
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          env: localGit,
          include: ['test/**/*.test.ts'],
          exclude: ['test/soak/**', 'test/conformance/**', 'test/go/**', 'test/forge/**', 'test/attack/**'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'attack',
          include: ['test/attack/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'conformance',
          env: localGit,
          include: ['test/conformance/**/*.test.ts'],
          // One server for all of them.
          globalSetup: ['test/conformance/support/global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          // Programs written in Go; building them takes minutes.
          name: 'go',
          env: localGit,
          include: ['test/go/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          // A Gitea, which is built from source; that takes minutes.
          name: 'forge',
          env: localGit,
          include: ['test/forge/**/*.test.ts'],
          globalSetup: ['test/forge/support/global-setup.ts'],
          testTimeout: 180_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'soak',
          env: localGit,
          include: ['test/soak/**/*.test.ts'],
          testTimeout: 600_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
