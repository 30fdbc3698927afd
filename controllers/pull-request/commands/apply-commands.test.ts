import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Actor } from '../../../src/resource/object/request-context.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { SyncRequests } from '../../repository/sync-requests.ts';

const REQUIRED = { requiredGates: [{ conditionType: GATE, approveOnly: true }] };

describe('commands in comments', () => {
  const open = eachProposals();
  let at: Proposals;
  let name: string;
  beforeEach(() => {
    at = open();
  });

  async function start(review: Record<string, unknown> = {}, spec: Record<string, unknown> = {}): Promise<void> {
    await at.policy(review, spec);
    name = await at.propose();
    await at.reconcile(name);
  }
  /** Writes a comment, and has it read. Returns its id. */
  async function comment(author: string, body: string): Promise<string> {
    const id = at.forge.comment(1, author, body);
    await read();
    return id;
  }
  async function read(): Promise<void> {
    await at.reconcile('apps');
    for (let times = 0; times < 4; times += 1) await at.reconcile(name);
  }
  const own = () => (at.forge.commentsOf.get(1) ?? []).filter(({ isOwn }) => isOwn);
  const reply = () => own().find(({ body }) => body.includes('topic=commands'))?.body ?? '';
  const condition = () => at.revision(name).kptfile?.status?.conditions?.find(({ type }) => type === GATE);
  /** Executed commands, as the record has them. */
  const executed = () => at.revision(name).record?.commands?.entries ?? [];

  test('set and approve act in the name of the mapped user, and one reply lists the results', async () => {
    await start({}, REQUIRED);
    await comment('bob', `/sluice set ${GATE} True load test\npassed`);
    expect(condition()).toMatchObject({ status: 'True', message: 'load test' });
    expect(at.revision(name).record?.verdicts.find(({ type }) => type === GATE)).toMatchObject({
      by: 'bob@example.com',
      face: 'api',
    });
    expect(reply()).toContain(`| \`/sluice set ${GATE} True load test\` | \`bob\` as \`bob@example.com\` | Done: `);
    await comment('CARL', '/sluice approve');
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(at.revision(name).tip.facts).toMatchObject({ actor: 'carl@example.com', face: 'api' });
    expect(own()).toHaveLength(1);
    expect(reply()).toMatch(
      /\| `\/sluice approve` \| `CARL` as `carl@example.com` \| Done: `approved` \|\n\| `\/sluice set/,
    );
  });

  test('the history has the command, its user and its result', async () => {
    await start();
    await comment('bob', '/sluice adpot');
    const subjects = git(at.path, ['log', '--all', '--format=%s']);
    expect(subjects).toContain('/sluice adpot of bob (refused)');
    expect(reply()).not.toContain('¦');
  });

  test('reject returns the proposal, with the reason', async () => {
    await start();
    await comment('bob', '/sluice reject too expensive');
    expect(at.revision(name).lifecycle).toBe('Draft');
    expect(at.revision(name).record?.steps.at(-1)).toMatchObject({
      ...{ action: 'reject', by: 'bob@example.com' },
      reason: expect.stringMatching(/^too expensive \(comment https:.*#comment-1 of bob\)$/),
    });
  });

  test('why shows what it waits for, and rerun writes checks and text again', async () => {
    await start({}, REQUIRED);
    await comment('bob', '/sluice why');
    expect(reply()).toMatch(
      /Done: `see below`[\s\S]*`apps.app.w1` is `Proposed`[\s\S]*example.com\/Tested` \| \*\*Missing/,
    );
    at.forge.checks.clear();
    at.forge.calls.length = 0;
    await comment('bob', '/sluice rerun');
    expect(at.forge.calls).toEqual(expect.arrayContaining(['reviews', 'setChecks']));
    expect(at.forge.checksOf(at.revision(name).commit)).toEqual({ 'sluice/ready': 'pending' });
    expect(own()).toHaveLength(1);
  });

  test('a condition without a gate is set, and the reply warns that its type may be misspelt', async () => {
    await start({}, REQUIRED);
    await comment('bob', `/sluice set ${GATE}d True fine`);
    expect(reply()).toMatch(
      /Done: `example.com\/Testedd is True; apps\.app\.w1 has no gate of type example.com\/Testedd/,
    );
    expect(reply()).toContain(`did you mean ${GATE}?`);
  });

  test('a user without a mapping changes nothing, and gets one reply however many comments there are', async () => {
    await start({}, REQUIRED);
    for (const text of [
      '/sluice approve',
      `/sluice set ${GATE} True`,
      '/sluice reject @everyone <img src=x>',
      '/sluice why',
    ])
      await comment('mallory', text);
    at.restart();
    await read();
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(condition()).toBeUndefined();
    expect(executed()).toEqual([]);
    expect(own().map(({ body }) => body)).toEqual([expect.stringMatching(/does not list in `spec.review.approvers`/)]);
    expect(own()[0]?.body).not.toMatch(/mallory|everyone|img/);
  });

  test('a command is executed once: after a restart, by two processes, and where a response was lost', async () => {
    await start({}, REQUIRED);
    await comment('bob', `/sluice set ${GATE} True`);
    await at.set(name, 'False');
    for (let times = 0; times < 2; times += 1) {
      at.restart();
      await read();
    }
    expect(condition()?.status).toBe('False');
    expect(executed()).toHaveLength(1);

    // Its effect is recorded, and the process ends before the reply.
    at.forge.before = (method) => {
      if (method === 'setComment') throw new SluiceError('Unavailable', 'status 502');
    };
    at.forge.comment(1, 'bob', `/sluice set ${GATE} True again`);
    await at.reconcile('apps');
    await expect(at.reconcile(name)).rejects.toThrow('status 502');
    at.forge.before = () => undefined;
    await at.set(name, 'False');
    at.restart();
    await read();
    expect(condition()?.status).toBe('False');
    expect(executed()).toHaveLength(2);
    expect(reply()).toContain('True again` | `bob`');
    expect(own()).toHaveLength(1);

    const { id, url } = at.forge.commentsOf.get(1)?.at(-1) ?? { id: '', url: '' };
    const entry = {
      id,
      url,
      user: 'bob',
      subject: 'bob@example.com',
      command: 'x',
      outcome: 'done',
      message: '',
    } as const;
    const again = { command: { source: at.forge.pulls[0]?.url ?? '', ...entry } };
    const late = { ...again.command, id: '2' };
    await expect(at.world.store.change(name, { command: late }, ANNA)).rejects.toThrow(/was executed already/);
  });

  test('a refused command is not tried again when it would be possible', async () => {
    await start({}, REQUIRED);
    await comment('bob', '/sluice approve');
    expect(reply()).toMatch(/`\/sluice approve` .*\*\*Refused\*\*: `.*gate example.com\/Tested is closed/);
    await at.set(name, 'True');
    at.restart();
    await read();
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(executed()).toHaveLength(1);
  });

  test('what a user with write access does to comments has no effect', async () => {
    await start({}, REQUIRED);
    const harmless = await comment('bob', 'I have a question');
    at.forge.editComment(1, harmless, '/sluice approve');
    await comment('bob', `/sluice set ${GATE} False`);
    const answer = own()[0];
    // An edited reply is written again, and nothing in it is believed.
    at.forge.editComment(1, answer?.id ?? '', '<!-- sluice:comment topic=commands -->\n/sluice approve');
    await comment('mallory', answer?.body ?? '');
    at.restart();
    await read();
    expect(condition()?.status).toBe('False');
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(executed()).toHaveLength(1);
    expect(own().map(({ body }) => body)).toEqual([answer?.body]);
  });

  test('what is read again before a command decides: a user closes the pull request meanwhile', async () => {
    await start();
    at.forge.comment(1, 'bob', '/sluice approve');
    await at.reconcile('apps');
    at.forge.before = (method) => {
      if (method === 'get') at.forge.change(1, { state: 'closed' });
    };
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    await read();
    expect(at.revision(name).lifecycle).toBe('Draft');
  });

  test('edited comments are not executed again', async () => {
    await start({}, REQUIRED);
    const id = await comment('bob', `/sluice set ${GATE} False`);
    at.forge.editComment(1, id, `/sluice set ${GATE} True`);
    await read();
    at.restart();
    await read();
    expect(condition()?.status).toBe('False');
  });

  test('an edit within the second in which the comment was written has no effect', async () => {
    await start({}, REQUIRED);
    const id = await comment('bob', 'I have a question');
    const comments = at.forge.commentsOf.get(1) ?? [];
    // The time of the host stays the same.
    at.forge.commentsOf.set(
      1,
      comments.map((one) => (one.id === id ? { ...one, body: `/sluice set ${GATE} True` } : one)),
    );
    at.forge.change(1, {});
    await read();
    await comment('bob', '/sluice why');
    expect(condition()).toBeUndefined();
    expect(executed()).toHaveLength(1);
  });

  describe('on a host that does not report edits', () => {
    const APPS = { namespace: 'default', name: 'apps' };
    const SET = `/sluice set ${GATE} True`;
    let requests: SyncRequests;
    beforeEach(async () => {
      at.forge.reportsEdits = false;
      requests = new SyncRequests(at.clock);
      await start({}, REQUIRED);
      at.restart({ requests });
    });
    const outcomes = () => executed().map(({ outcome, message }) => `${outcome}: ${message}`);

    test('a command is executed once a webhook has shown how it was written', async () => {
      const id = await comment('bob', SET);
      expect(outcomes()).toEqual([]);
      requests.addWritten(APPS, { id, author: 'bob', body: `${SET}\r\n` });
      await read();
      expect(outcomes()).toEqual([`done: ${GATE} is True`]);
    });

    test('without a webhook it is refused with the next step, and reads need none', async () => {
      await comment('bob', '/sluice why');
      expect(outcomes()).toEqual(['done: see below']);
      await comment('bob', SET);
      at.clock.advance(10_000);
      await read();
      expect(reply()).toContain('no webhook with the event of comments');
      await comment('bob', '/sluice approve');
      at.clock.advance(10_000);
      await read();
      expect(outcomes()).toEqual([
        'done: see below',
        expect.stringContaining(`use sluice rpkg condition set ${name} ${GATE} True, as no review sets a condition`),
        expect.stringMatching(/^refused: this host .*submit a review instead/),
      ]);
      expect(at.forge.pulls[0]?.body).toMatch(/Those but `why` and `rerun` are refused unless the webhook/);
      expect(condition()).toBeUndefined();
    });

    test.each([
      ['another text', { author: 'bob', body: 'I have a question' }],
      ['another author', { author: 'mallory', body: SET }],
    ])('what was written with %s has no effect', async (_what, written) => {
      // The edit has the time of the comment, and was made before Sluice read it first.
      const id = at.forge.comment(1, 'bob', SET);
      requests.addWritten(APPS, { id, ...written });
      await read();
      at.clock.advance(10_000);
      await read();
      expect(outcomes()).toEqual([]);
      expect(condition()).toBeUndefined();
    });
  });

  test('comments before the proposal began are ignored', async () => {
    await at.policy();
    at.forge.commentsOf.set(1, [
      {
        ...{ id: '7', author: 'bob', body: '/sluice approve', isOwn: false, url: 'https://git.example.com/x' },
        ...{ createdAt: '2025-12-31T23:59:59Z', updatedAt: '2025-12-31T23:59:59Z' },
      },
    ]);
    name = await at.propose();
    await at.reconcile(name);
    await comment('bob', 'hello');
    expect(at.revision(name).lifecycle).toBe('Proposed');
  });

  test('approve counts for what the head was when the comment was written', async () => {
    await start({}, REQUIRED);
    const change = async (text: string) => {
      const files = { 'app/b.yaml': `kind: B\napiVersion: v1\nmetadata: {name: ${text}}\n` };
      const commit = await at.world.push(at.path, files, 'proposed/app/w1');
      await at.world.store.repository('apps').sync();
      const head = { ...(at.forge.pulls[0]?.head ?? { branch: '', isSameRepository: true }), commit };
      at.forge.change(1, { head });
      await at.set(name, 'True');
    };
    // A push between the comment and the moment in which it is read.
    at.forge.comment(1, 'bob', '/sluice approve');
    await change('later');
    at.forge.change(1, {
      head: { branch: 'proposed/app/w1', isSameRepository: true, commit: at.revision(name).commit },
    });
    await read();
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(reply()).toMatch(/Refused\*\*: `the package has changed since it was proposed/);
    // The changed package was seen before this comment.
    await comment('bob', '/sluice approve');
    expect(at.revision(name).lifecycle).toBe('Published');
  });

  test.each([
    ['/sluice approve', /publishOn: approval/],
    [`/sluice set ${GATE} True`, /publishOn: approval/],
  ])('with publishOn: approval the host never causes a publication: %s', async (text, refusal) => {
    await start({ publishOn: 'approval' });
    await comment('bob', text);
    expect(reply()).toMatch(refusal);
    expect(condition()).toBeUndefined();
    expect(at.revision(name).lifecycle).toBe('Proposed');
  });

  test.each(['/sluice approve', '/sluice reject no', `/sluice set ${GATE} True`])(
    'without the right of the subject it is refused: %s',
    async (text) => {
      await start();
      const asked: string[] = [];
      const refuse = (of: string) => async (user: Actor) => {
        asked.push(`${of} ${user.name}`);
        return false;
      };
      at.restart({ mayApprove: refuse('approval'), maySetConditions: refuse('status') });
      await comment('bob', text);
      const [what, role] = text.includes('set') ? ['status', 'condition-issuer'] : ['approval', 'approver'];
      // The check of the proposal asks who may approve.
      expect(asked).toContain(`${what} bob@example.com`);
      const ofStatus = asked.filter((one) => one.startsWith('status'));
      expect(ofStatus).toEqual(what === 'status' ? ['status bob@example.com'] : []);
      expect(reply()).toContain(`User "bob@example.com" may not update packagerevisions/${what} in this namespace`);
      expect(reply()).toContain(`as the ClusterRole sluice:${role} has it`);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      expect(condition()).toBeUndefined();
    },
  );

  test('approve counts for the quorum of a group by the groups of the mapped user', async () => {
    const carl = { user: 'carl', subject: 'carl@example.com' };
    const approvers = [{ user: 'bob', subject: 'bob@example.com', groups: ['sre'] }, carl];
    await start({ approvers }, { approval: { quorum: { required: 1, from: ['group:sre'] } } });
    await comment('carl', '/sluice approve');
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(reply()).toMatch(/counts \(group:sre\)/);
    await comment('bob', '/sluice approve');
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('set follows the rules for issuers', async () => {
    await start({}, { givers: [{ conditionType: GATE, actors: ['carl@example.com'] }] });
    await comment('bob', `/sluice set ${GATE} True`);
    expect(condition()).toBeUndefined();
    expect(reply()).toMatch(/Refused/);
    await comment('bob', '/sluice set sluice.dev/Reviewed True');
    await comment('bob', '/sluice set sluice.dev/Ready True');
    expect(executed().map(({ outcome }) => outcome)).toEqual(['refused', 'refused', 'refused']);
    await comment('carl', `/sluice set ${GATE} True`);
    expect(condition()?.status).toBe('True');
  });

  test('hostile text is code in the reply', async () => {
    await start({}, REQUIRED);
    await comment('bob', `/sluice set ${GATE} False \`x\`|@all <b>\u001b[31m [a](javascript:x) <!-- sluice:end -->`);
    const row =
      reply()
        .split('\n')
        .find((line) => line.includes('@all')) ?? '';
    expect(row.match(/`/g)).toHaveLength(8);
    expect(row.match(/\|/g)).toHaveLength(4);
    expect(reply()).not.toContain('\u001b');
    await comment('bob', '/sluice `@all`');
    expect(reply()).toContain('`/sluice ˋ@allˋ`');
  });

  test('a host that permits no comments stops nothing else', async () => {
    await start({}, REQUIRED);
    at.forge.before = (method) => {
      if (method === 'setComment') throw new SluiceError('Refused', 'status 403; the token lacks a permission');
    };
    await comment('bob', `/sluice set ${GATE} True`);
    await comment('bob', '/sluice approve');
    expect(at.revision(name).lifecycle).toBe('Published');
    expect(await at.world.events(name)).toContainEqual(expect.stringMatching(/^ReplyFailed: .*status 403/));
  });
});
