import { expect, test } from 'vitest';
import { packageSelectorSchema } from './package-selector.ts';

test.each(['q*', 'apps/?', 'apps/[ab]'])('a path that cannot be one is refused: %s', (path) => {
  const parsed = packageSelectorSchema.safeParse({ packages: ['apps/web', path] });
  expect(parsed.error?.issues).toMatchObject([
    {
      path: ['packages', 1],
      message:
        'must be the whole path of a package: "*", "?" and "[" are no wildcards; list the paths, or select by labels',
    },
  ]);
});

test('a path of folders is accepted', () => {
  expect(packageSelectorSchema.safeParse({ packages: ['apps/web-1.0', 'q_1'] }).success).toBe(true);
});
