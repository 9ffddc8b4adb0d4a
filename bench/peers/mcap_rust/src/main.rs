//! Reads and writes MCAP files with the crate `mcap`, for side-by-side measurements and as a
//! foreign reader.
//!
//!     mcap_peer stream FILE                     every message, in file order, mapped
//!     mcap_peer raw FILE                        the same, without joining channels to messages
//!     mcap_peer indexed FILE                    every message, in log-time order, through the index
//!     mcap_peer write FILE none|lz4|zstd OUT    FILE's messages, held in memory, written to OUT
//!     mcap_peer list FILE                       log time, topic, size and sum of bytes of each message
//!
//! Prints one line of JSON: messages, payload bytes, a checksum, and the seconds of the work alone.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::time::{Duration, Instant};

use mcap::records::MessageHeader;
use mcap::sans_io::indexed_reader::{IndexedReadEvent, IndexedReader};

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Default)]
struct Tally {
    messages: u64,
    bytes: u64,
    checksum: u64,
}

impl Tally {
    fn take(&mut self, log_time: u64, data: &[u8]) {
        self.messages += 1;
        self.bytes += data.len() as u64;
        let first = u64::from(data.first().copied().unwrap_or(0));
        self.checksum = self.checksum.wrapping_add(log_time ^ first);
    }

    fn print(&self, spent: Duration) {
        println!(
            "{{\"messages\": {}, \"bytes\": {}, \"checksum\": {}, \"seconds\": {:.6}}}",
            self.messages,
            self.bytes,
            self.checksum,
            spent.as_secs_f64()
        );
    }
}

fn stream(file: &[u8]) -> Outcome<()> {
    let started = Instant::now();
    let mut tally = Tally::default();
    for message in mcap::MessageStream::new(file)? {
        let message = message?;
        tally.take(message.log_time, &message.data);
    }
    tally.print(started.elapsed());
    Ok(())
}

fn raw(file: &[u8]) -> Outcome<()> {
    let started = Instant::now();
    let mut tally = Tally::default();
    for message in mcap::read::RawMessageStream::new(file)? {
        let message = message?;
        tally.take(message.header.log_time, &message.data);
    }
    tally.print(started.elapsed());
    Ok(())
}

fn indexed(file: &[u8]) -> Outcome<()> {
    let started = Instant::now();
    let mut tally = Tally::default();
    let summary = mcap::Summary::read(file)?.ok_or("the file has no summary")?;
    let mut reader = IndexedReader::new(&summary)?;
    let mut wanted = None;
    loop {
        if let Some((offset, length)) = wanted.take() {
            let at = usize::try_from(offset)?;
            reader.insert_chunk_record_data(offset, &file[at..at + length])?;
        }
        match reader.next_event() {
            None => break,
            Some(event) => match event? {
                IndexedReadEvent::ReadChunkRequest { offset, length } => {
                    wanted = Some((offset, length));
                }
                IndexedReadEvent::Message { header, data } => tally.take(header.log_time, data),
            },
        }
    }
    tally.print(started.elapsed());
    Ok(())
}

fn write(file: &[u8], codec: &str, out: &str) -> Outcome<()> {
    let compression = match codec {
        "none" => None,
        "lz4" => Some(mcap::Compression::Lz4),
        "zstd" => Some(mcap::Compression::Zstd),
        other => return Err(format!("unknown codec {other}; known are: none, lz4, zstd").into()),
    };
    let mut held = Vec::new();
    for message in mcap::MessageStream::new(file)? {
        held.push(message?);
    }
    // One thread and its fastest zstd level on both sides.
    let mut options = mcap::WriteOptions::new()
        .compression(compression)
        .compression_threads(0)
        .chunk_size(Some(1 << 20));
    if codec == "zstd" {
        options = options.compression_level(1);
    }
    let target = File::create(out)?;
    let started = Instant::now();
    let mut tally = Tally::default();
    let mut writer = options.create(BufWriter::with_capacity(1 << 20, target))?;
    let mut ids = BTreeMap::new();
    for message in &held {
        let id = match ids.get(&message.channel.id) {
            Some(id) => *id,
            None => {
                let schema = match &message.channel.schema {
                    Some(schema) => writer.add_schema(&schema.name, &schema.encoding, &schema.data)?,
                    None => 0,
                };
                let id = writer.add_channel(
                    schema,
                    &message.channel.topic,
                    &message.channel.message_encoding,
                    &message.channel.metadata,
                )?;
                ids.insert(message.channel.id, id);
                id
            }
        };
        let header = MessageHeader {
            channel_id: id,
            sequence: message.sequence,
            log_time: message.log_time,
            publish_time: message.publish_time,
        };
        writer.write_to_known_channel(&header, &message.data)?;
        tally.take(message.log_time, &message.data);
    }
    writer.finish()?;
    tally.print(started.elapsed());
    Ok(())
}

fn list(file: &[u8]) -> Outcome<()> {
    for message in mcap::MessageStream::new(file)? {
        let message = message?;
        let sum: u64 = message.data.iter().map(|byte| u64::from(*byte)).sum();
        println!(
            "{} {} {} {}",
            message.log_time,
            message.channel.topic,
            message.data.len(),
            sum
        );
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let map = |path: &str| -> Outcome<memmap2::Mmap> {
        let file = File::open(path)?;
        // The file is not changed while it is mapped.
        Ok(unsafe { memmap2::Mmap::map(&file)? })
    };
    match words.as_slice() {
        ["stream", path] => stream(&map(path)?),
        ["raw", path] => raw(&map(path)?),
        ["indexed", path] => indexed(&map(path)?),
        ["write", path, codec, out] => write(&map(path)?, codec, out),
        ["list", path] => list(&map(path)?),
        _ => Err("usage: mcap_peer stream|raw|indexed|list FILE, or write FILE CODEC OUT".into()),
    }
}
