// A session of a lockstep run with zeromq.js, from docs/protocol.md: token, hello, warm-up, an answer to every state.
const fs = require("fs");
const zmq = require("zeromq");
const { encode, decode } = require("@msgpack/msgpack");

async function main(endpoint, tokenFile) {
  const exchange = new zmq.Dealer({ linger: 0 });
  exchange.connect(endpoint);
  const token = fs.readFileSync(tokenFile, "ascii").trim();
  await exchange.send(encode({ type: "hello", protocol: 1, name: "zeromq.js", claim: ["*"], token }));
  const welcome = decode((await exchange.receive())[0]);
  if (welcome.type !== "welcome") throw new Error(welcome.text);
  const data = new zmq.Dealer({ linger: 1000, routingId: Buffer.from(welcome.identity) });
  data.connect(welcome.step_endpoint);
  let seq = 0, answered = 0;
  for await (const [frame] of data) {
    const message = decode(frame);
    if (message.type === "bye") break;
    if (message.type !== "state") throw new Error(message.text);
    const values = message.step < 0 ? {} : Object.fromEntries(welcome.granted.map((name) => [name, 0.1]));
    await data.send(encode({ type: "command", seq: ++seq, step: message.step, values }));
    answered += message.step >= 0;
  }
  console.log(`${answered} states answered`);
  process.exit(0);
}

main(...process.argv.slice(2)).catch((fault) => { console.error(fault.message); process.exit(1); });
