import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { approverRights, permitCommands } from './approver-rights.ts';

/** As the schema of a policy permits them: with whatever separates names in texts, except white space. */
const subject = fc
  .string({ unit: fc.constantFrom(...'ab,;=:@-.0'), minLength: 1, maxLength: 6 })
  .filter((name) => !/^(controller|group):/.test(name));
const subjects = fc.oneof(
  { weight: 3, arbitrary: fc.uniqueArray(subject, { maxLength: 14 }) },
  fc.subarray(['and', 'more', 'names', 'without', 'the', 'right', '3']),
);

test('the command binds exactly the users whom the condition lists', async () => {
  await fc.assert(
    fc.asyncProperty(subjects, fc.infiniteStream(fc.boolean()), async (names, answers) => {
      const permitted = new Set(names.filter(() => answers.next().value === true));
      const policy = {
        metadata: { name: 'review', namespace: 'default' },
        spec: {
          review: { publishOn: 'merge', approvers: names.map((name, at) => ({ user: `login-${at}`, subject: name })) },
        },
      };
      const read = policy as unknown as Parameters<typeof permitCommands>[0];
      const isPermitted = async ({ name }: { readonly name: string }) => permitted.has(name);
      const found = await approverRights(read, isPermitted, new AbortController().signal);
      const conditions = found === undefined ? [] : [{ ...found, lastTransitionTime: '2030-01-01T00:00:00Z' }];
      const [command, ...others] = permitCommands({ ...read, status: { conditions } as never });
      const bound = [...(command ?? '').matchAll(/ '?--user=([^\s']*)/g)].map(([, name]) => name);
      expect(bound).toEqual(names.filter((name) => !permitted.has(name)).slice(0, 10));
      expect(others).toEqual([]);
    }),
    { numRuns: runs(100) },
  );
});
