// Opens the index of one repository in a process of its own and prints how much memory that took, in MB.
import { openBench } from './open-bench.ts';

const before = process.memoryUsage.rss();
const repository = await openBench(process.argv[2] ?? '', undefined);
console.log(((process.memoryUsage.rss() - before) / 1024 / 1024).toFixed(0));
await repository.close();
