import { type Command, Option } from 'commander';
import { UPDATE_STRATEGIES } from '../../package/upstream/revision-source.ts';
import {
  examples,
  type Finish,
  integer,
  listOf,
  PLACE_HELP,
  withActor,
  withAllNamespaces,
  withHeaders,
  withOutput,
  withPlace,
} from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

const LIFECYCLES = ['Draft', 'Proposed', 'Published', 'DeletionProposed'];

/** `sluice rpkg …` and `sluice why`. */
export function addRevisionCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const rpkg = program.command('rpkg').description('work with package revisions').addHelpText('after', PLACE_HELP);
  addReading(rpkg, invocation, finish);
  addPreview(rpkg, invocation, finish);
  addCreating(rpkg, invocation, finish);
  addSteps(rpkg, invocation, finish);
  addConditions(rpkg, invocation, finish);

  const why = program
    .command('why')
    .description('what one revision waits for: every gate, who can settle it, what to do next')
    .argument(
      '<revision>',
      'name of a package revision; or <kind>/<name> of a packagevariant, packagevariantset, waveplan, analysisrun, packagepolicy, freeze, repository or deliverytarget',
    );
  examples(
    withOutput(withPlace(why), ['text', 'json', 'yaml']),
    'sluice why packages.web-shop.v1',
    'sluice why packages.web-shop.v1 -o json',
    'sluice why packagevariantset/fleet',
    'sluice why waveplan/web-v2',
    'sluice why freeze/year-end',
  ).action(async (name, options) => {
    finish(await (await import('../why/why.ts')).why(name, options, invocation));
  });
}

function addReading(rpkg: Command, invocation: Invocation, finish: Finish): void {
  const get = rpkg
    .command('get')
    .description('list package revisions')
    .argument('[names...]', 'names of package revisions')
    .option('--repository <name>', 'only of this repository')
    .option('--name <package>', 'only of this package')
    .option('--workspace <name>', 'only of this workspace')
    .option('--revision <number>', 'only with this revision number; -1 is the main branch', integer)
    .addOption(new Option('--lifecycle <value>', 'only in this state').choices(LIFECYCLES))
    .option('-l, --selector <labels>', 'only with these labels')
    .option('--show-kptfile', 'print the Kptfile instead (needs one name)');
  examples(
    withHeaders(withOutput(withAllNamespaces(withPlace(get)))),
    'sluice rpkg get',
    'sluice rpkg get --name web-shop --lifecycle Draft',
    'sluice rpkg get packages.web-shop.v1 -o yaml',
  ).action(async (names, options) => {
    finish(await (await import('./rpkg-get.ts')).rpkgGet(names, options, invocation));
  });

  const pull = rpkg
    .command('pull')
    .description('write the files of a revision into a folder')
    .argument('<name>', 'name of a package revision')
    .argument(
      '[folder]',
      'a folder that does not exist or is empty; without it the files go to stdout as a ResourceList',
    );
  examples(withPlace(pull), 'sluice rpkg pull packages.web-shop.v1 ./web-shop').action(
    async (name, folder, options) => {
      finish(await (await import('./rpkg-pull.ts')).rpkgPull(name, folder, options, invocation));
    },
  );

  const history = rpkg
    .command('history')
    .description('who did what to a revision, and why; newest first')
    .argument('<name>', 'name of a package revision')
    .option('--limit <number>', 'at most so many entries', integer, 100);
  examples(
    withHeaders(withOutput(withPlace(history), ['table', 'json', 'yaml'])),
    'sluice rpkg history packages.web-shop.v1',
  ).action(async (name, options) => {
    finish(await (await import('./rpkg-history.ts')).rpkgHistory(name, options, invocation));
  });

  const tree = rpkg
    .command('tree')
    .description('packages below the ones that they were cloned from, and what is behind its upstream')
    .argument('[packages...]', 'only of these: <repository>/<package>, or names of package revisions')
    .option('--behind', 'only packages with a newer upstream revision');
  examples(
    withHeaders(withOutput(withPlace(tree), ['table', 'json', 'yaml'])),
    'sluice rpkg tree',
    'sluice rpkg tree blueprints/web',
    'sluice rpkg tree --behind -o json',
  ).action(async (names, options) => {
    finish(await (await import('./rpkg-tree.ts')).rpkgTree(names, options, invocation));
  });

  const diff = rpkg
    .command('diff')
    .description('what differs between a revision and another one')
    .argument('<name>', 'name of a package revision')
    .argument('[other]', 'what to compare with: source, latest, or a name', 'source')
    .option('--name-only', 'print the paths of the files only')
    .addHelpText(
      'after',
      `
"source" is the published revision that it was copied from, or else the latest; "latest" is the highest published revision of
the package. After "sluice rpkg rebase" the comparison is still with the published revision, so that it shows what came from the main
branch too; name the revision of the branch, such as packages.web-shop.main, to leave that out. Exit code 0 if nothing differs, 1 if something does.`,
    );
  examples(
    withOutput(withPlace(diff), ['patch', 'json', 'yaml']),
    'sluice rpkg diff packages.web-shop.v2',
    'sluice rpkg diff packages.web-shop.v2 latest',
    'sluice rpkg diff packages.web-shop.v2 -o json --name-only',
  ).action(async (name, other, options) => {
    finish(await (await import('./rpkg-diff.ts')).rpkgDiff(name, other, options, invocation));
  });
}

function addPreview(rpkg: Command, invocation: Invocation, finish: Finish): void {
  const preview = rpkg
    .command('preview')
    .description('the changes that the publication of a revision commits to delivery targets')
    .argument('<revision>', 'name of a package revision')
    .option('--target <name>', 'only of this DeliveryTarget; without it, of every one that selects the package')
    .addHelpText(
      'after',
      `
Prints the patch of each target. Targets that would not change, or that would refuse the package, are listed on stderr.
Exit code 0, also if something changes; 1 if a target cannot be read.`,
    );
  examples(
    withOutput(withPlace(preview), ['patch', 'json', 'yaml']),
    'sluice rpkg preview packages.web-shop.v2',
    'sluice rpkg preview packages.web-shop.v2 --target edge-east',
    'sluice rpkg preview packages.web-shop.v2 -o json',
  ).action(async (name, options) => {
    finish(await (await import('./rpkg-preview.ts')).rpkgPreview(name, options, invocation));
  });
}

function addCreating(rpkg: Command, invocation: Invocation, finish: Finish): void {
  const init = rpkg
    .command('init')
    .description('create a new package as a draft')
    .argument('<package>', 'path of the package inside the repository')
    .requiredOption('--repository <name>', 'repository to create it in')
    .requiredOption('--workspace <name>', 'name of the line of work')
    .option('--description <text>', 'what the package is', 'sample description')
    .option('--keywords <words>', 'keywords, separated by commas', listOf)
    .option('--site <url>', 'page about the package');
  examples(
    withActor(withPlace(init)),
    'sluice rpkg init network/upf --repository packages --workspace v1 --keywords 5g,upf',
  ).action(async (path, options) => {
    finish(await (await import('./rpkg-create.ts')).rpkgInit(path, options, invocation));
  });

  const clone = rpkg
    .command('clone')
    .description('create a new package as a draft from a package of another place, its upstream')
    .argument('<source>', 'name of a package revision, or <git address>.git[/directory][@ref]')
    .argument('<package>', 'path of the new package inside the repository')
    .requiredOption('--repository <name>', 'repository to create it in')
    .option('--workspace <name>', 'name of the line of work', 'v1')
    .option('--directory <path>', 'with a Git address: folder of the package (default: /)')
    .option('--ref <name>', 'with a Git address: branch, tag or commit (default: main)')
    .option('--secret-ref <name>', 'with a Git address: Secret with the credentials');
  examples(
    withActor(withPlace(clone)),
    'sluice rpkg clone blueprints.upf.v1 edge/upf --repository edge',
    'sluice rpkg clone https://git.example.com/blueprints.git/network/upf@v2 upf --repository edge --workspace v1',
  ).action(async (source, path, options) => {
    finish(await (await import('./rpkg-create.ts')).rpkgClone(source, path, options, invocation));
  });

  const copy = rpkg
    .command('copy')
    .alias('edit')
    .description('create a draft from a published revision of the same package')
    .argument('<source>', 'name of a published package revision')
    .requiredOption('--workspace <name>', 'name of the line of work');
  examples(withActor(withPlace(copy)), 'sluice rpkg copy packages.web-shop.v1 --workspace v2').action(
    async (source, options) => {
      finish(await (await import('./rpkg-create.ts')).rpkgCopy(source, options, invocation));
    },
  );

  const revert = rpkg
    .command('revert')
    .description('create and propose a draft with the content that preceded a published revision')
    .argument('<name>', 'name of the published package revision to revert')
    .option('--to <revision>', 'name or number (v3) of the published revision whose content is proposed')
    .option('--workspace <name>', 'name of the line of work (default: revert-<revision number>)')
    .option('--reason <text>', 'why; recorded with the proposal')
    .option('--dry-run', 'print what would be created; create nothing')
    .addHelpText(
      'after',
      `
The content is that of the revision that a target went back to, or of the highest published one below the named one that did not fail on a
target; notes name those that are skipped. Later revisions are reverted too; a note names them. The draft is rendered and evaluated as any
other, and another user approves it.`,
    );
  examples(
    withActor(withPlace(revert)),
    'sluice rpkg revert packages.web-shop.v3',
    'sluice rpkg revert packages.web-shop.v3 --reason "checkout fails since v3"',
    'sluice rpkg revert packages.web-shop.v3 --to packages.web-shop.v1',
    'sluice rpkg revert packages.web-shop.v3 --workspace hotfix --dry-run',
  ).action(async (name, options) => {
    finish(await (await import('./rpkg-revert.ts')).rpkgRevert(name, options, invocation));
  });

  const upgrade = rpkg
    .command('upgrade')
    .description('create a draft of a cloned package with what changed in its upstream')
    .argument('[names...]', 'a published package revision; with --discover any, or none for all')
    .option('--revision <number>', 'revision of the upstream to go to; 0 is the latest', integer, 0)
    .option('--workspace <name>', 'name of the line of work; required unless with --discover')
    .addOption(
      new Option('--strategy <name>', 'what becomes of local changes')
        .choices(UPDATE_STRATEGIES)
        .default('resource-merge'),
    )
    .addOption(
      new Option('--discover <upstream|downstream>', 'only list: updates of packages, or packages for updates').choices(
        ['upstream', 'downstream'],
      ),
    )
    .addHelpText(
      'after',
      `
resource-merge merges resource by resource, field by field; fast-forward goes only where nothing was changed locally;
force-delete-replace discards local changes; copy-merge replaces the files that upstream has and keeps the others.`,
    );
  examples(
    withOutput(withActor(withPlace(upgrade)), ['table', 'json', 'yaml']),
    'sluice rpkg upgrade edge.upf.v1 --workspace v2',
    'sluice rpkg upgrade edge.upf.v1 --workspace v2 --revision 3 --strategy copy-merge',
    'sluice rpkg upgrade --discover=upstream',
    'sluice rpkg upgrade --discover=downstream -o json',
  ).action(async (names, options) => {
    finish(await (await import('./rpkg-upgrade.ts')).rpkgUpgrade(names, options, invocation));
  });

  const rebase = rpkg
    .command('rebase')
    .description('merge what changed in a package on the main branch into its drafts')
    .argument('<names...>', 'names of drafts')
    .option(
      '--keep',
      'leave the files of the drafts as they are: their approval replaces what changed on the main branch',
    )
    .option('--reason <text>', 'why; recorded with the change')
    .addHelpText(
      'after',
      `
Packages merge resource by resource, field by field, as in an upgrade. Warnings name the files that both sides changed. A proposal has to
be rejected first.`,
    );
  examples(
    withActor(withPlace(rebase)),
    'sluice rpkg rebase packages.web-shop.v2',
    'sluice rpkg rebase packages.web-shop.v2 --keep --reason "the hotfix is part of v2"',
  ).action(async (names, options) => {
    finish(await (await import('./rpkg-rebase.ts')).rpkgRebase(names, options, invocation));
  });

  const push = rpkg
    .command('push')
    .alias('update')
    .description('update a draft with the files of a pulled folder')
    .argument('<name>', 'name of a package revision')
    .argument('[folder]', 'a folder that "rpkg pull" wrote', '.')
    .option('--reason <text>', 'why; recorded with the change')
    .addHelpText(
      'after',
      `
Files that were removed from the folder are removed from the package. If the revision has moved since it was pulled, nothing is
pushed.`,
    );
  examples(withActor(withPlace(push)), 'sluice rpkg push packages.web-shop.v1 ./web-shop').action(
    async (name, folder, options) => {
      finish(await (await import('./rpkg-push.ts')).rpkgPush(name, folder, options, invocation));
    },
  );
}

interface Step {
  readonly verb: 'propose' | 'approve' | 'reject' | 'propose-delete' | 'del';
  readonly alias?: string;
  readonly description: string;
}

const STEPS: readonly Step[] = [
  { verb: 'propose', description: 'propose drafts for approval' },
  { verb: 'approve', description: 'publish proposed revisions' },
  { verb: 'reject', description: 'send proposed revisions back to draft, or keep those proposed for deletion' },
  { verb: 'propose-delete', alias: 'propose-deletion', description: 'propose published revisions for deletion' },
  { verb: 'del', alias: 'delete', description: 'delete drafts, proposals, and revisions proposed for deletion' },
];

function addSteps(rpkg: Command, invocation: Invocation, finish: Finish): void {
  for (const { verb, alias, description } of STEPS) {
    const command = rpkg
      .command(verb)
      .description(description)
      .argument('<names...>', 'names of package revisions')
      .option('--reason <text>', 'why; recorded in the history')
      .option('--commit <id>', 'only if the revision is at this commit; for one name');
    if (alias !== undefined) command.alias(alias);
    if (verb === 'approve')
      command.option('--break-glass', 'publish with closed gates; a policy names who may, and --reason must say why');
    const why = verb === 'reject' ? ' --reason "the port is wrong"' : '';
    examples(withActor(withPlace(command)), `sluice rpkg ${verb} packages.web-shop.v1${why}`).action(
      async (names, options) => {
        finish(await (await import('./rpkg-step.ts')).rpkgStep(verb, names, options, invocation));
      },
    );
  }
}

function addConditions(rpkg: Command, invocation: Invocation, finish: Finish): void {
  const condition = rpkg.command('condition').description('set or withdraw a condition of a draft or a proposal');
  examples(condition, 'sluice rpkg condition set packages.web-shop.v1 shop.example.com/CapacityReviewed True');
  const set = condition
    .command('set')
    .description('set a condition for the current content of the revision; setting it again affirms it')
    .usage('[options] <name> <type> <status>\n       sluice rpkg condition set [options] -l <labels> <type> <status>')
    .argument('<name>', 'name of a package revision; left out with a selector')
    .argument('<type>', 'condition type')
    .argument('[status]', 'True, False or Unknown')
    .option('-l, --selector <labels>', 'all revisions with these labels, in place of a name')
    .option('--repository <name>', 'with -l: only of this repository')
    .addOption(
      new Option('--lifecycle <value>', 'with -l: only in this state')
        .choices(['Draft', 'Proposed'])
        .default('Proposed'),
    )
    .option('--reason <word>', 'one word for programs')
    .option('--message <text>', 'human-readable message')
    .addHelpText(
      'after',
      `
With a selector the revisions of a repository are written together, in few pushes. Each is reported; the exit code is 1 if one failed, or if
no revision matches.`,
    );
  examples(
    withActor(withPlace(set)),
    'sluice rpkg condition set packages.web-shop.v1 shop.example.com/CapacityReviewed True --message "load test reviewed"',
    'sluice rpkg condition set -l region=us-west example.com/Canary True',
  ).action(async (name, type, status, options) => {
    const { rpkgConditionSet } = await import('./rpkg-condition.ts');
    finish(await rpkgConditionSet([name, type, status], options, invocation));
  });

  const remove = condition
    .command('rm')
    .description('withdraw a condition')
    .argument('<name>', 'name of a package revision')
    .argument('<type>', 'condition type');
  examples(
    withActor(withPlace(remove)),
    'sluice rpkg condition rm packages.web-shop.v1 shop.example.com/CapacityReviewed',
  ).action(async (name, type, options) => {
    finish(await (await import('./rpkg-condition.ts')).rpkgConditionRemove(name, type, options, invocation));
  });
}
