import { expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { ObjectSet } from '../../app/data/object-set.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { eventKind } from '../../resource/kinds/core/event.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { findCondition } from '../../resource/object/condition.ts';
import { cli, draft, register, useRepository } from './testing.ts';

useRepository();

const POLICY = `apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: strict}
spec:
  requiredGates: [{conditionType: example.com/Testd}]
  approval: {quorum: {required: 2, from: ["group:sre"]}}
  review: {forge: {provider: gitea, api: "https://git.invalid/api/v1", secretRef: {name: forge}}}
`;
const secret = (data: string) =>
  `---\napiVersion: v1\nkind: Secret\nmetadata: {name: forge}\nstringData: {${data}: secret}\n`;
const reasons = async (): Promise<string[]> =>
  JSON.parse((await cli.run('why', 'packagepolicy/strict', '-o', 'json')).stdout).reasons;

test('names that nothing has and a missing Secret are reasons, and the status has the same about names', async () => {
  const name = await draft({});
  expect((await cli.run('rpkg', 'condition', 'set', name, 'example.com/Tested', 'True')).code).toBe(0);
  await register(POLICY);
  const unknown = [
    'no package has a condition or gate of the type example.com/Testd; did you mean example.com/Tested?',
    'no RoleBinding or ClusterRoleBinding names the group sre',
  ];
  const missing =
    /^Secret forge of spec.review.forge.secretRef does not exist, .*: create it with a token of the Git host/;
  expect(await reasons()).toEqual(expect.arrayContaining([...unknown, expect.stringMatching(missing)]));

  const without = JSON.parse((await cli.run('why', 'packagepolicy/strict', '-o', 'json')).stdout);
  expect(without).toMatchObject({
    state: 'in force, but pull requests cannot be opened or read',
    commands: [expect.stringMatching(/^kubectl create secret generic forge --namespace default /)],
  });

  expect((await reasons()).join('\n')).toMatch(
    /no proposal in \S+ gets a pull request: the repository is not on git.invalid, which spec.review.forge.api of policy strict names/,
  );
  // Its gate leads to the policy: no reviewer has requested anything.
  const closed = JSON.parse((await cli.run('why', name, '-o', 'json')).stdout).gates;
  expect(closed.find(({ type }: { readonly type: string }) => type === 'sluice.dev/Reviewed').next).toMatch(
    /^sluice up/,
  );

  // No proposal waits.
  expect(await reasons()).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^no proposal waits by which it would be seen/),
      expect.stringMatching(/^the last failure that Repository packages reported is from \S+Z: remote .* is not a URL/),
    ]),
  );

  expect((await reasons()).join('\n')).not.toContain('it selects none');
  await register(POLICY.replace('spec:\n', 'spec:\n  selector: {packages: [wep]}\n'));
  expect(await reasons()).toContain('it selects none of the 1 package of its namespace: is spec.selector right?');

  await register(secret('password'));
  expect((await reasons()).join('\n')).toContain('Secret forge of spec.review.forge.secretRef has neither token nor');
  await register(secret('token'));
  expect((await reasons()).join('\n')).not.toContain('Secret');

  // What the Secret has is looked at before the host is asked.
  await register(secret('token').replace(': secret}', ': ""}'));
  const empty = JSON.parse((await cli.run('why', 'packagepolicy/strict', '-o', 'json')).stdout);
  expect(empty.reasons.join('\n')).toContain('policy strict refers to, has no value for the key token; put it there');
  expect(empty).toMatchObject({
    state: 'in force, but pull requests cannot be opened or read',
    commands: [expect.stringMatching(/^kubectl patch secret forge --namespace default .*token/)],
  });
  await register(secret('token'));

  // Some responses of one kind of host have the form of those of another one.
  await register(POLICY.replace('provider: gitea', 'provider: github'));
  const other = JSON.parse((await cli.run('why', 'packagepolicy/strict', '-o', 'json')).stdout);
  expect(other).toMatchObject({
    state: 'in force, but pull requests cannot be opened or read',
    commands: [expect.stringMatching(/^check spec.review.forge.api and spec.review.forge.provider: kubectl edit/)],
  });
  expect(other.reasons.join('\n')).toMatch(
    /spec.review.forge.api of policy strict ends with \/api\/v1, as that of Gitea and Forgejo does, and .*provider.* is github/,
  );
  await register(POLICY);

  // Without a proposal, what the pull requests of users have met counts.
  const event = async (reason: string, message: string, second: number) => {
    const set = await ObjectSet.open({ folder: dataFolder(cli.data), clock: systemClock, write: true });
    await set.client({ name: 'anna' }).create(eventKind, {
      metadata: { name: `e${second}`, namespace: 'default' },
      ...{ reason, message, type: 'Warning', lastTimestamp: `2099-01-01T00:00:0${second}Z` },
      involvedObject: {
        apiVersion: repositoryKind.apiVersion,
        kind: repositoryKind.kind,
        name: 'packages',
        namespace: 'default',
      },
    });
    await set.close();
  };
  const seen = async () => JSON.parse((await cli.run('why', 'packagepolicy/strict', '-o', 'json')).stdout);
  const invalid = 'status 401: the token of Secret default/forge is not valid; put a new one there';
  await event('PullRequestsNotChecked', invalid, 1);
  expect(await seen()).toMatchObject({
    state: 'in force, but pull requests cannot be opened or read',
    commands: [expect.stringMatching(/^kubectl patch secret forge --namespace default .*token.* TOKEN_FILE/)],
  });
  await event('PullRequestsRead', 'again', 2);
  expect(await seen()).toMatchObject({ state: 'in force' });
  await event('PullRequestsNotChecked', 'status 429: limit', 3);
  expect(await seen()).toMatchObject({ state: 'in force' });

  // The host alone cannot complete the quorum.
  const merging = 'publishOn: merge, approvers: [{user: bob, subject: bob@example.com}], forge:';
  await register(POLICY.replace('forge:', merging));
  expect((await reasons()).join('\n')).toContain(
    'spec.review.approvers maps 1 user, and the quorum requires 2: the Git host completes it only with approvals through Sluice; add entries',
  );

  // A key of an App that is none.
  const ofApp = secret('githubAppPrivateKey').replace('{githubApp', '{githubAppID: "12", githubApp');
  await register(`${POLICY.replace('provider: gitea', 'provider: github').replace('/api/v1', '/api/v3')}${ofApp}`);
  expect(await seen()).toMatchObject({
    state: 'in force, but pull requests cannot be opened or read',
    commands: [expect.stringMatching(/^kubectl patch secret forge .*githubAppID.*githubAppPrivateKey.* KEY_FILE/)],
  });
  await register(`${POLICY}${secret('token')}`);

  // A second policy with reviews for the same packages.
  await register(`${POLICY}---\n${POLICY.replace('strict', 'strict-too')}`);
  const clash = JSON.parse((await cli.run('why', 'packagepolicy/strict-too', '-o', 'json')).stdout);
  expect(clash.state).toBe('in force, but pull requests cannot be opened or read');
  expect(clash.reasons).toContain(
    'the policies strict, strict-too all have spec.review for packages such as packages/web, so that none of them applies there, and no pull request is opened or read',
  );
  expect(clash.commands).toEqual([
    'remove spec.review from all but one of them, or change their selectors: kubectl edit packagepolicy strict-too --namespace default',
  ]);

  const objects = await ObjectSet.open({ folder: dataFolder(cli.data), clock: systemClock, write: false });
  const policy = await objects
    .client({ name: 'anna' })
    .get(packagePolicyKind, { namespace: 'default', name: 'strict' });
  await objects.close();
  expect(findCondition(policy.status?.conditions, 'NamesKnown')).toMatchObject({
    ...{ status: 'False', reason: 'UnknownNames', message: expect.stringContaining(unknown.join('; ')) },
  });
});
