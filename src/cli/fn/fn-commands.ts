import { type Command, Option } from 'commander';
import { examples, type Finish, several } from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

const FOLDER = 'folder of a package';
const DESTINATION = '"stdout": a ResourceList, "unwrap": YAML documents, or a folder that does not exist yet';

/** `sluice fn …`: functions on folders, without a server and without a data folder. */
export function addFnCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const fn = program
    .command('fn')
    .description('run KRM functions on the packages of a folder, without any server')
    .addHelpText(
      'after',
      `
Arguments, flags and output are those of "kpt fn". So -o says where resources go, and not, as elsewhere in sluice, how a table looks.
docs/functions.md lists the built-in functions and describes how others run.`,
    );
  examples(fn, 'sluice fn render ./ghost', 'sluice fn doc');
  addRender(fn, invocation, finish);
  addEval(fn, invocation, finish);
  addStreams(fn, invocation, finish);

  const doc = fn
    .command('doc')
    .description('explain a built-in function, or list all of them')
    .argument('[name]', 'name of a function, or its image')
    .option('-i, --image <image>', 'the same, as kpt takes it');
  examples(doc, 'sluice fn doc', 'sluice fn doc apply-setters').action(async (name, options) => {
    finish(await (await import('./fn-doc.ts')).fnDoc(name, options, invocation));
  });
}

function addRender(fn: Command, invocation: Invocation, finish: Finish): void {
  const render = withRunning(
    fn
      .command('render')
      .description('run the pipelines of a package and of the packages in it')
      .argument('[folder]', FOLDER, '.')
      .option('--allow-exec', 'run programs that a pipeline names; they can do what you can do, so trust them first')
      .option('--allow-network', 'let containers use the network')
      .option('--render-status', 'write status.renderStatus, which older kpt rejects, also where there is none'),
  ).addHelpText(
    'after',
    `
Nested packages come first. Only what functions change is written, nothing if one of them fails; comments and layout stay.
In place the Kptfile gets the condition Rendered, and status.renderStatus if it has one or --render-status
is given; elsewhere (-o) it gets neither.
Exit code 1 if the package cannot be rendered.`,
  );
  examples(
    render,
    'sluice fn render ./ghost',
    'sluice fn render ./ghost --results-dir out/',
    'sluice fn render ./ghost -o out/ && kubectl apply -R -f out/',
    'sluice fn render ./ghost -o stdout | sluice fn eval - -i set-annotations -o unwrap -- team=blog',
  ).action(async (folder, options) => {
    finish(await (await import('./fn-render.ts')).fnRender(folder, options, invocation));
  });
}

function addEval(fn: Command, invocation: Invocation, finish: Finish): void {
  const evaluate = fn
    .command('eval')
    .description('run one function on the resources of a folder, or of stdin (-)')
    .usage('[folder|-] [options] [-- key=value...]')
    .argument('[words...]', 'folder (default: the current one) or -; after -- the configuration as key=value')
    .option('-i, --image <image>', 'image of the function, such as set-namespace')
    .option('--exec <command>', 'program to run as the function, with its arguments')
    .option('--fn-config <file>', 'file with the configuration of the function')
    .option('--tag <tag>', 'tag in place of that of the image')
    .option('-s, --save', 'also put the function into the pipeline of the Kptfile')
    .addOption(
      new Option('-t, --type <type>', 'what it is in the pipeline')
        .choices(['mutator', 'validator'])
        .default('mutator'),
    )
    .option('--network', 'let a container use the network')
    .addOption(new Option('-m, --include-meta-resources').hideHelp());
  for (const [word, verb] of [
    ['match', 'only'],
    ['exclude', 'without'],
  ] as const) {
    evaluate
      .option(`--${word}-api-version <version>`, `${verb} resources of this apiVersion`)
      .option(`--${word}-kind <kind>`, `${verb} resources of this kind`)
      .option(`--${word}-name <name>`, `${verb} resources of this name`)
      .option(`--${word}-namespace <namespace>`, `${verb} resources in this namespace`)
      .option(`--${word}-annotations <key=value>`, `${verb} resources with this annotation; several times`, several)
      .option(`--${word}-labels <key=value>`, `${verb} resources with this label; several times`, several);
  }
  withRunning(evaluate).addHelpText(
    'after',
    `
With - a ResourceList or YAML documents are read from stdin, and a ResourceList goes to stdout unless -o says otherwise.
Pipelines and statuses of Kptfiles are left alone; Kptfiles are among the resources, as in kpt.
Exit code 1 if the function fails; then nothing is written.`,
  );
  examples(
    evaluate,
    'sluice fn eval ./ghost -i set-namespace -- namespace=blog',
    'sluice fn eval ./ghost -i set-labels --match-kind Deployment --save -- tier=web',
    'sluice fn eval ./ghost --exec "./check.sh --strict" --results-dir out/',
    'sluice fn source ./ghost | sluice fn eval - -i set-annotations -o unwrap -- team=blog',
  ).action(async (words, options) => {
    const { folder, settings } = beforeAndAfterDashes(words, program(evaluate).rawArgs);
    finish(await (await import('./fn-eval.ts')).fnEval(folder, settings, options, invocation));
  });
}

function addStreams(fn: Command, invocation: Invocation, finish: Finish): void {
  const source = fn
    .command('source')
    .description('write the resources of folders to stdout, as functions read them')
    .argument('[folders...]', FOLDER)
    .option('--fn-config <file>', 'configuration to put into the ResourceList')
    .option('-o, --output <place>', DESTINATION, 'stdout')
    .addOption(new Option('--include-meta-resources').hideHelp());
  examples(
    source,
    'sluice fn source ./ghost',
    'sluice fn source ./ghost | sluice fn eval - -i set-namespace -- namespace=blog | sluice fn sink ./blog',
  ).action(async (folders, options) => {
    finish(await (await import('./fn-source.ts')).fnSource(folders, options, invocation));
  });

  const sink = fn
    .command('sink')
    .description('write the resources of stdin into a new folder')
    .argument('<folder>', 'folder that does not exist yet')
    .addHelpText('after', '\nReads a ResourceList, or YAML documents.');
  examples(sink, 'sluice fn source ./ghost | sluice fn sink ./copy').action(async (folder) => {
    finish(await (await import('./fn-sink.ts')).fnSink(folder));
  });
}

/** Adds the common options of `render` and `eval`. */
function withRunning<Subject extends Command>(command: Subject): Subject {
  return command
    .option('-o, --output <place>', `${DESTINATION} (default: in place)`)
    .option('--results-dir <folder>', 'where to write results.yaml, with all that functions found')
    .addOption(
      new Option('--image-pull-policy <when>', 'when images of containers are pulled')
        .choices(['always', 'ifNotPresent', 'never'])
        .default('ifNotPresent'),
    )
    .addOption(
      new Option('--truncate-output <yes>', 'show the first findings of a function only')
        .choices(['true', 'false'])
        .default('true'),
    ) as Subject;
}

/** The parser does not report on which side of -- a word was. */
function beforeAndAfterDashes(words: readonly string[], all: readonly string[]) {
  const dashes = all.indexOf('--');
  const settings = dashes === -1 ? [] : all.slice(dashes + 1);
  return { folder: words.slice(0, words.length - settings.length), settings };
}

function program(command: Command): Command & { rawArgs: readonly string[] } {
  let top = command;
  while (top.parent !== null) top = top.parent;
  return top as never;
}
