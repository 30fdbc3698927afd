// The program of a worker; see WorkerProcess.
import { builtIns } from '../built-in/index.ts';
import { serveWorker } from './serve-worker.ts';

serveWorker(builtIns);
