import { expect, test } from 'vitest';
import { packagePolicyKind } from './package-policy.ts';
import { packageSelectorSchema } from './package-selector.ts';
import { wavePlanKind } from './wave/wave-plan.ts';

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

test.each([packagePolicyKind, wavePlanKind])('an object with a pattern for a path is refused: $kind', (kind) => {
  const [all, name] = [{ name: 'all', percent: 100 }, 'web'];
  expect(() =>
    kind.complete({ metadata: { name }, spec: { selector: { packages: ['x/a*'] }, waves: [all] } as never }),
  ).toThrow('spec.selector.packages[0]: Invalid value: "x/a*": must be the whole path of a package');
});
