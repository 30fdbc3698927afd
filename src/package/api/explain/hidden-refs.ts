/** What is said of refs that would have the same name as a revision and are not shown for that reason. */
export function hiddenRefsMessage(refs: readonly string[]): string {
  const [are, it] = refs.length === 1 ? ['is', 'it'] : ['are', 'each of them'];
  return `${refs.join(' and ')} would have the same name and ${are} not shown; push ${it} under a workspace of its own`;
}
