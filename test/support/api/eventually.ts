/** Waits until something holds that the server does in its own time. */
export async function eventually<Value>(ask: () => Promise<Value>, holds: (value: Value) => boolean): Promise<Value> {
  const end = Date.now() + 30_000;
  for (;;) {
    const value = await ask();
    if (holds(value)) return value;
    if (Date.now() > end) throw new Error(`it did not come to pass: ${JSON.stringify(value).slice(0, 2000)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
