// Starts a control plane in a process of its own, prints the numbers of its processes, and waits until it is killed.
import { ControlPlane } from './control-plane.ts';
import { clusterPrograms } from './programs.ts';

process.on('SIGINT', () => process.exit(1));
const programs = await clusterPrograms(() => undefined);
if ('missing' in programs) throw new Error(programs.missing);
const plane = await ControlPlane.start({ programs });
console.log(JSON.stringify({ pids: plane.pids, folder: plane.folder }));
setInterval(() => undefined, 60_000);
