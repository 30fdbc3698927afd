// The program of a worker; see WorkerProcess.
import { Catalog } from '../catalog/catalog.ts';
import { loadPacks } from '../catalog/load-packs.ts';
import { runPipeline } from '../pipeline/run-pipeline.ts';
import type { WorkerSetup } from './messages.ts';
import { serveWorker } from './serve-worker.ts';
import { watchParent } from './watch-parent.ts';

const setup = JSON.parse(process.argv[2] ?? '') as WorkerSetup;
watchParent(setup.parent);
const catalog = new Catalog(await loadPacks(setup.packs));
// Whoever gives up a rendering ends this process.
const { signal } = new AbortController();
serveWorker((input, { external, limits, onEvent }) =>
  runPipeline(input, { catalog, external, limits, signal, onEvent }),
);
