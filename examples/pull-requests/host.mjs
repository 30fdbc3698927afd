// What users do on Gitea or Forgejo with buttons, through the API. The environment names the repository and the user:
//   FORGE=https://git.example.com/api/v1/repos/owner/packages  FORGE_TOKEN_FILE=bob.token
//   node host.mjs show <number>                        title, state, labels, and the checks of the last commit
//   node host.mjs approve|request-changes <number> <comment>
//   node host.mjs close|merge|comment <number> <comment>
//   node host.mjs force-merge <number> <comment>       in spite of the rules of the branch: for administrators
//   node host.mjs protect <branch> [<user>]            requires sluice/ready, and lets at most <user> push: for administrators
//   node host.mjs comments <number>                    the conversation, once Sluice has replied to a command
//   node host.mjs create <branch> <title>              opens a pull request to main
//   node host.mjs talk <number>                        its comments
import { readFileSync } from 'node:fs';

const { FORGE, FORGE_TOKEN_FILE } = process.env;
for (const [name, value] of Object.entries({ FORGE, FORGE_TOKEN_FILE }))
  if (value === undefined || value === '') {
    console.error(`set ${name}, as the beginning of this file shows`);
    process.exit(2);
  }
const [verb, number, comment = ''] = process.argv.slice(2);

/** Undefined for a response without a text, and for one of the `expected` failures. */
async function call(method, path, body, expected = []) {
  const response = await fetch(`${FORGE}${path}`, {
    method,
    headers: {
      authorization: `token ${readFileSync(FORGE_TOKEN_FILE, 'utf8').trim()}`,
      'content-type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (expected.includes(response.status)) return undefined;
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

async function show() {
  const pull = await call('GET', `/pulls/${number}`, undefined, [404]);
  if (pull === undefined) return console.log(`there is no pull request #${number} yet`);
  const state = pull.merged ? 'merged' : pull.state;
  console.log(`#${pull.number} ${pull.title}: ${state} [${pull.labels.map(({ name }) => name).join(', ')}]`);
  const { statuses } = await call('GET', `/commits/${pull.head.sha}/status`);
  for (const { context, status, description } of statuses ?? []) console.log(`${context} ${status}: ${description}`);
}

const review = async (event) => {
  await call('POST', `/pulls/${number}/reviews`, { event, body: comment });
  console.log('reviewed');
};
const merge = async (more) => {
  const wanted = { Do: 'squash', MergeMessageField: comment, ...more };
  for (let attempt = 1; ; attempt += 1) {
    try {
      await call('POST', `/pulls/${number}/merge`, wanted);
      return console.log('merged');
    } catch (error) {
      const [, refusal] = /: 405 .*"message":"(.*?)"/.exec(String(error)) ?? [];
      // The host first computes whether it can be merged.
      const isComputing = refusal === 'Please try again later' && attempt < 30;
      if (refusal === undefined) throw error;
      if (!isComputing) return console.log(`refused: ${refusal}`);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
};
const protect = async (branch, user) => {
  const pushers = user === '' ? [] : [user];
  const pushes = { enable_push: user !== '', enable_push_whitelist: user !== '', push_whitelist_usernames: pushers };
  const checks = { enable_status_check: true, status_check_contexts: ['sluice/ready'] };
  const rules = await call('GET', '/branch_protections');
  const [method, path] = rules.some((rule) => rule.rule_name === branch) ? ['PATCH', `/${branch}`] : ['POST', ''];
  await call(method, `/branch_protections${path}`, { rule_name: branch, ...pushes, ...checks });
  console.log('protected');
};
const verbs = {
  show,
  approve: () => review('APPROVED'),
  'request-changes': () => review('REQUEST_CHANGES'),
  merge: () => merge({}),
  'force-merge': () => merge({ force_merge: true }),
  protect: () => protect(number, comment),
  create: async () => {
    const pull = await call('POST', '/pulls', { head: number, base: 'main', title: comment });
    console.log(`opened #${pull.number}`);
  },
  comment: async () => {
    await call('POST', `/issues/${number}/comments`, { body: comment });
    console.log('commented');
  },
  comments: async () => {
    const isReply = ({ body }) => body.startsWith('<!-- sluice:comment topic=commands -->');
    let all = [];
    // Sluice reads comments every ten seconds without a webhook.
    for (let attempt = 1; attempt <= 60 && !all.some(isReply); attempt += 1) {
      if (attempt > 1) await new Promise((resolve) => setTimeout(resolve, 1000));
      all = await call('GET', `/issues/${number}/comments`);
    }
    for (const { user, body } of all) console.log(`${user.login}: ${body.replace(/^<!--.*-->\n/, '')}`);
  },
  talk: async () => {
    for (const { user, body } of await call('GET', `/issues/${number}/comments`)) console.log(`${user.login}: ${body}`);
  },
  close: async () => {
    await call('POST', `/issues/${number}/comments`, { body: comment });
    await call('PATCH', `/pulls/${number}`, { state: 'closed' });
    console.log('closed');
  },
};
const run = verbs[verb];
if (run === undefined || number === undefined)
  throw new Error(`usage: host.mjs ${Object.keys(verbs).join('|')} <number>`);
await run().catch((error) => {
  console.error(String(error));
  process.exitCode = 1;
});
