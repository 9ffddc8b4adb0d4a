#pragma once
// Doctor: one walk over all records of a file, with what has to be remembered to compare the
// summary with the data.
#include <map>
#include <optional>
#include <set>

#include "ropewalk/engine/mcap/doctor.h"

namespace ropewalk {

class Doctor {
 public:
  Doctor(const Source& source, const DoctorRequest& request, const RunContext& context,
         DoctorReport& report)
      : source_(source), request_(request), context_(context), report_(report) {}

  Status run();

 private:
  static constexpr std::size_t kMaxDiagnoses = 1000;
  static constexpr std::uint64_t kJumpNs = 86'400ULL * 1'000'000'000;  // a day

  struct ChunkSeen {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  // 0: no chunk
    bool known = false;        // the head could be read
    bool decoded = false;
    mcap::ChunkHead head;
    std::uint64_t index_end = 0;
    std::vector<std::pair<std::uint16_t, std::uint64_t>> index_offsets;
    std::map<std::uint16_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> messages;
  };

  void error(std::uint64_t offset, std::string text);
  void warning(std::uint64_t offset, std::string text);
  template <typename T>
  const T* parsed(const Result<T>& result, std::uint64_t offset) {
    if (result.ok()) return &*result;
    error(offset, std::string(result.status().message()));
    return nullptr;
  }

  void on_data_record(const mcap::RecordHead& record, ByteSpan content);
  void on_summary_record(const mcap::RecordHead& record, ByteSpan content);
  void on_schema(ByteSpan content, std::uint64_t offset);
  void on_channel(ByteSpan content, std::uint64_t offset);
  void on_message(const mcap::Message& message, std::uint64_t offset);
  void on_chunk(const mcap::RecordHead& record, ByteSpan content);
  void on_message_index(const mcap::RecordHead& record, ByteSpan content);
  void close_chunk();
  void on_attachment(const mcap::RecordHead& record, ByteSpan content);
  void on_chunk_index(const mcap::ChunkIndex& index, std::uint64_t offset);
  void on_statistics(const mcap::Statistics& statistics, std::uint64_t offset);
  Status check_footer(const mcap::RecordHead& record, const mcap::Footer& footer);
  Status check_end(std::uint64_t end);
  Status check_data_crc();

  const Source& source_;
  const DoctorRequest& request_;
  const RunContext& context_;
  DoctorReport& report_;

  Bytes buffer_;
  std::map<std::uint16_t, mcap::Schema> schemas_;
  std::map<std::uint16_t, mcap::Channel> channels_;
  std::set<std::uint16_t> unknown_;
  std::map<std::uint16_t, std::uint64_t> counts_;
  std::map<std::uint16_t, std::uint64_t> newest_;  // log time, by channel
  std::set<std::uint16_t> unordered_;              // warned of
  std::set<std::uint16_t> jumped_;
  std::uint64_t first_time_ = 0;
  std::uint64_t last_time_ = 0;
  std::uint64_t newest_of_all_ = 0;
  std::uint64_t loose_messages_ = 0;
  std::uint64_t chunks_without_crc_ = 0;

  ChunkSeen chunk_;                            // the last one
  std::map<std::uint64_t, ChunkSeen> chunks_;  // by offset
  using Named = std::map<std::uint64_t, std::pair<std::uint64_t, std::string>>;
  Named attachments_;  // offset → length, name
  Named metadata_;

  std::optional<std::uint64_t> data_end_;
  std::uint64_t data_section_end_ = 0;
  std::uint32_t stored_data_crc_ = 0;
  bool has_statistics_ = false;
  std::set<std::uint64_t> indexed_chunks_;
  std::set<std::uint64_t> indexed_attachments_;
  std::set<std::uint64_t> indexed_metadata_;
  std::uint8_t group_ = 0;
  std::set<std::uint8_t> groups_;
  std::map<std::uint8_t, std::uint64_t> group_start_;
  std::map<std::uint8_t, std::uint64_t> group_end_;
};

}  // namespace ropewalk
