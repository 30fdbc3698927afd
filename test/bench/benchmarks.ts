/** A benchmark as its help describes it; the module that runs it has the same name. */
export interface BenchmarkHelp {
  readonly measures: string;
  /** Each option with its default value, and its effect. */
  readonly options: Readonly<Record<string, string>>;
}

export const BENCHMARKS = {
  api: { measures: 'the API of `sluice up`, against a plain HTTPS server with constant responses', options: {} },
  cluster: {
    measures: 'Sluice as an extension of a kube-apiserver, beside `sluice up` and a plain definition',
    options: {
      '--parts=idle,latency,rates,failover': 'tables',
      '--packages=1000': 'packages of the first repository',
      '--repositories=1': 'repositories; further ones are small',
      '--idle=60': 'idle time in seconds',
      '--rounds=5': 'rounds of each failover',
    },
  },
  delivery: {
    measures: 'delivery to Git alone, and to Argo CD and Flux',
    options: {
      '--parts=commits,engines': 'tables',
      '--packages=100,1000,6000': 'packages of a target, in the first table',
    },
  },
  fleet: {
    measures: 'one blueprint for many targets: drafts of its next revision, merges, a wave of approvals',
    options: {
      '--parts=fan-out,merge,wave': 'tables',
      '--targets=10,100,1000': 'targets of the fan-out',
      '--per-repository=20': 'targets that share a repository',
      '--clones': 'drafts of first revisions',
    },
  },
  forge: {
    measures: 'proposals as pull requests of a Git host on loopback, and an idle hour with open pull requests',
    options: {
      '--hosts=gitea,github': 'Git hosts; none: only the idle hour',
      '--proposals=20,50,200': 'proposals at once, each number in a repository of its own',
      '--latencies=20': 'reviews of which the time until the updated check is measured',
      '--publish-on=review': 'merge: the second user merges with the button',
      '--idle=1000': 'open pull requests of the idle hour; 0: none',
      '--details': 'counts each kind of request',
    },
  },
  lifecycle: { measures: 'the steps from a draft to a publication, against the same steps by git', options: {} },
  many: {
    measures: 'many repositories in one process: starts, an idle time, publications',
    options: {
      '--repositories=1,200': 'repositories',
      '--idle=30': 'idle time in seconds',
      '--remote': 'puts them behind HTTP instead of on this machine',
    },
  },
  remote: {
    measures: 'pushes, polls and fetches over HTTP, against git doing the same',
    options: { '--packages=1000,10000,30000': 'packages of the repositories' },
  },
  render: { measures: 'pipelines, against parsing and printing the same files once', options: {} },
  scale: {
    measures: 'index, reads, watches and lifecycles of large repositories',
    options: {
      '--packages=1000,10000,30000': 'packages of the repositories',
      '--layout=nested,flat': 'layouts of the packages',
      '--svg=FILE': 'writes a plot of how the cost of each operation grows',
    },
  },
} as const satisfies Readonly<Record<string, BenchmarkHelp>>;

export type BenchmarkName = keyof typeof BENCHMARKS;

/** What `--help` prints of these benchmarks. */
export function benchmarkHelp(names: readonly BenchmarkName[]): string {
  const lines = names.flatMap((name) => {
    const { measures, options }: BenchmarkHelp = BENCHMARKS[name];
    const width = Math.max(...Object.keys(options).map(({ length }) => length));
    const rows = Object.entries(options).map(([option, effect]) => `    ${option.padEnd(width)}   ${effect}`);
    return ['', `${name}: ${measures}`, ...rows];
  });
  return [
    'Usage: npm run bench -- [NAME...] [OPTION...]',
    'Without a name all benchmarks run. Values are the defaults, lists can be shortened; docs/benchmarks.md has results.',
    ...lines,
    '',
  ].join('\n');
}

/** Options that none of these benchmarks has. */
export function unknownOptions(names: readonly BenchmarkName[], options: readonly string[]): string[] {
  const known = names.flatMap((name) => Object.keys(BENCHMARKS[name].options).map(nameOf));
  return options.filter((option) => !known.includes(nameOf(option)));
}

function nameOf(option: string): string {
  return option.split('=', 1)[0] ?? option;
}
