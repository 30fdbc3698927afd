import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A relay of connections to another port, which can break them. */
export interface TcpRelay extends AsyncDisposable {
  readonly port: number;
  /** Number of connections that were opened since the start. */
  readonly opened: number;
  /** Resets all open connections. */
  cut(): void;
  /** While true, connections are refused after they are made. */
  refuses: boolean;
}

export async function startTcpRelay(targetPort: number): Promise<TcpRelay> {
  const sockets = new Set<Socket>();
  let opened = 0;
  let refuses = false;
  const server = createServer((socket) => {
    opened += 1;
    if (refuses) return void socket.resetAndDestroy();
    const target = connect(targetPort, '127.0.0.1');
    for (const [one, other] of [
      [socket, target],
      [target, socket],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      // The test breaks connections on purpose.
      one
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(one);
          other.destroy();
        });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    get opened() {
      return opened;
    },
    cut,
    get refuses() {
      return refuses;
    },
    set refuses(value) {
      refuses = value;
    },
    async [Symbol.asyncDispose]() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
